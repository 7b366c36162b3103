// y [m, n] = a^T b of a [k, m] and b [k, n], the gradient of a weight: a sum of k outer products,
// with operands in place and y in the second-level cache. oneDNN copies the transposed operand
// first. Each element is one chain of fused multiply-adds in the order of k: the same bits for
// every number of threads. 16-bit operands are widened in memory, and y is rounded once.

#include <fmt/format.h>

#include <algorithm>

#include "backend/cpu/packed/kernels.h"
#include "backend/cpu/packed/outer_micro_kernels.h"
#include "backend/cpu/vector/convert.h"
#include "backend/cpu/workspace_layout.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::packed {
namespace {

using I64 = std::int64_t;

constexpr I64 k_columns = 32;
/// Elements of y: 256 KiB, a quarter of a second-level cache.
constexpr I64 k_max_elements = 1 << 16;
/// Terms per pass over the rows of y: as many rows of 32 columns of b stay in the first-level
/// cache.
constexpr I64 k_terms = 128;
/// Multiplications that are worth waking a thread for.
constexpr I64 k_waking_work = 1 << 18;

struct OuterProducts {
  I64 m, n, k;
  I64 parts = 1;
  bool by_columns = true;  ///< parts are columns of y, not rows

  OuterProducts(const NodeView& node, int threads)
      : m(node.output().shape[0]), n(node.output().shape[1]), k(node.input(0).shape[0]) {
    parts = std::clamp<I64>(m * n * k / k_waking_work, 1, threads);
    // The split with the smaller largest part; if equal, by columns.
    by_columns = divide_up(blocks(), parts) * strips() <= divide_up(strips(), parts) * blocks();
    parts = std::min(parts, by_columns ? blocks() : strips());
  }

  I64 blocks() const { return divide_up(n, k_columns); }
  I64 strips() const { return divide_up(m, k_outer_rows); }
  /// The first row of a strip: strips differ by one row at most.
  I64 row(I64 strip) const { return m * strip / strips(); }

  void run(const float* a, const float* b, float* y, I64 part) const {
    const auto begin = [&](I64 pieces, bool cut, I64 i) { return cut ? pieces * i / parts : 0; };
    const auto end = [&](I64 pieces, bool cut, I64 i) {
      return cut ? pieces * (i + 1) / parts : pieces;
    };
    const I64 first_block = begin(blocks(), by_columns, part);
    const I64 last_block = end(blocks(), by_columns, part);
    const I64 first_strip = begin(strips(), !by_columns, part);
    const I64 last_strip = end(strips(), !by_columns, part);
    for (I64 from = 0; from < k; from += k_terms) {
      for (I64 block = first_block; block < last_block; ++block) {
        const I64 column = block * k_columns;
        for (I64 strip = first_strip; strip < last_strip; ++strip) {
          const I64 top = row(strip), rows = row(strip + 1) - top;
          // a is in a cache once the first columns have passed over it.
          const OuterPrefetch ahead = strip + 1 == last_strip ? OuterPrefetch::b
                                      : block == first_block  ? OuterPrefetch::a
                                                              : OuterPrefetch::none;
          k_avx512_outer_micro_kernels.strip[rows - 1][static_cast<int>(ahead)](
              {.a = a + from * m + top,
               .a_stride = m,
               .b = b + from * n + column,
               .b_stride = n,
               .depth = std::min(k_terms, k - from),
               .y = y + top * n + column,
               .y_stride = n,
               .columns = std::min(k_columns, n - column),
               .first = from == 0});
        }
      }
    }
  }
};

}  // namespace

Accepts accepts_outer_products(const NodeView& node) {
  const graph::Attrs& attrs = node.attrs();
  const DType dtype = node.output().dtype;
  if (Accepts a = vector::accepts_dtype(dtype); !a) return a;
  if (!attrs.get<bool>("transpose_a") || attrs.get<bool>("transpose_b")) {
    return Accepts::no("not the transposed a times b");
  }
  const Shape& y = node.output().shape;
  if (node.input(0).shape.elements() == 0 || y.elements() == 0) return Accepts::no("empty");
  if (y.elements() > k_max_elements) return Accepts::no("y exceeds 256 KiB");
  if (y[0] < k_outer_rows || 4 * y[1] < 3 * divide_up(y[1], k_columns) * k_columns) {
    return Accepts::no("vectors of columns would be empty");
  }
  return Accepts::yes();
}

Prepared prepare_outer_products(const NodeView& node, const Capabilities& capabilities) {
  const OuterProducts p(node, capabilities.threads);
  const DType dtype = node.output().dtype;
  const auto run = [p](const float* a, const float* b, float* y) {
    parallel_for_each(p.parts, 1, [&](I64 part) { p.run(a, b, y, part); });
  };
  if (dtype == DType::float32) {
    return launch([run](const Args& args) {
      run(args.in[0].as<float>(), args.in[1].as<float>(), args.out[0].as<float>());
    });
  }
  const I64 a_size = p.k * p.m, b_size = p.k * p.n;
  return launch(
      [=, &loops = vector::loops(capabilities.isa)](const Args& args) {
        float* a = reinterpret_cast<float*>(args.workspace);
        float *b = a + a_size, *y = b + b_size;
        vector::widen(loops, dtype, args.in[0].data, a, a_size);
        vector::widen(loops, dtype, args.in[1].data, b, b_size);
        run(a, b, y);
        vector::narrow(loops, y, dtype, args.out[0].data, p.m * p.n);
      },
      static_cast<std::size_t>(a_size + b_size + p.m * p.n) * sizeof(float));
}

}  // namespace halfstep::backend::cpu::packed

#include "packed.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>

#include "backend/cpu/kernels.h"
#include "backend/cpu/packed/kernels.h"
#include "fixture.h"
#include "graph/builder.h"
#include "graph/ops/ops.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using namespace std::string_view_literals;
namespace packed = backend::cpu::packed;
using graph::ops::packed_mask_bytes;

packed::Operand operand_of(char operand) {
  return operand == 'a' ? packed::Operand::a : packed::Operand::b;
}

/// One bit of the mask output M.
bool bit(const Tensor& mask, std::int64_t n, std::int64_t row, std::int64_t column) {
  const std::int64_t block = row / 32 * ((n + 31) / 32) + column / 32;
  std::uint32_t word;
  std::memcpy(&word, mask.as<std::byte>() + (block * 32 + row % 32) * 4, sizeof word);
  return (word >> (column % 32) & 1U) != 0;
}

Tensor random_mask(std::int64_t m, std::int64_t n) {
  const std::int64_t bytes = packed_mask_bytes(m, n);
  Tensor mask(DType::uint8, {bytes});
  const Tensor random = random_tensor(DType::float32, {bytes}, 7, 0, 256);
  for (std::int64_t i = 0; i < bytes; ++i) {
    mask.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(random.as<float>()[i]);
  }
  return mask;
}

/// All padding of a packed operand, and everything else.
void check_packed(const Tensor& got,
                  std::int64_t rows,
                  std::int64_t depth,
                  graph::ops::PackedFormat format,
                  char operand,
                  const std::function<double(std::int64_t row, std::int64_t k)>& want) {
  const packed::Layout layout{rows, depth, format};
  REQUIRE(got.elements() == graph::ops::packed_bytes(rows, depth, format));
  std::int64_t misses = 0;
  for (std::int64_t row = 0; row < layout.panels() * 32; ++row) {
    for (std::int64_t k = 0; k < layout.k_blocks() * 32; ++k) {
      const double value = packed_value(got, layout, operand, row, k);
      misses += value == (row < rows && k < depth ? want(row, k) : 0) ? 0 : 1;
    }
  }
  CHECK(misses == 0);
}

/// The largest magnitude in each block of 32 x 32 results.
void check_norms(const Tensor& got,
                 std::int64_t m,
                 std::int64_t n,
                 const std::function<double(std::int64_t row, std::int64_t column)>& y) {
  REQUIRE(got.shape() == Shape{(m + 31) / 32, (n + 31) / 32});
  for (std::int64_t block = 0; block < got.elements(); ++block) {
    const std::int64_t row = block / got.shape()[1] * 32;
    const std::int64_t column = block % got.shape()[1] * 32;
    double largest = 0;
    for (std::int64_t i = row; i < std::min(m, row + 32); ++i) {
      for (std::int64_t j = column; j < std::min(n, column + 32); ++j) {
        largest = std::max(largest, std::abs(y(i, j)));
      }
    }
    CHECK(element_as_double(got.view(), block) == largest);
  }
}

}  // namespace

PackedNode::PackedNode(std::string_view op, std::vector<Tensor> in, graph::Attrs attrs)
    : in_(std::move(in)) {
  graph::Builder b(graph_, graph::op_table());
  std::vector<graph::Value> values;
  for (const Tensor& x : in_) values.push_back(b.placeholder("x", x.dtype(), x.shape()));
  id_ = b.add_node(op, values, std::move(attrs));
}

std::vector<Tensor> PackedNode::run(const backend::Prepared& prepared) const {
  std::vector<Tensor> results;
  std::vector<TensorView> out;
  for (const graph::TensorType& type : graph_.node(id_).outputs) {
    results.emplace_back(type.dtype, type.shape);
    // Elements that the kernel does not write are detected.
    std::memset(results.back().view().data, 0xa5, results.back().bytes());
    out.push_back(results.back().view());
  }
  const AlignedBuffer workspace(prepared.workspace_bytes);
  std::fill_n(workspace.data(), workspace.bytes(), std::byte{0xa5});
  std::vector<TensorView> in;
  for (const Tensor& x : in_) in.push_back(x.view());
  prepared.launch->run({in, out, workspace.data()});
  return results;
}

Tensor pack(const packed::BlockKernels& blocks,
            const Tensor& x,
            graph::ops::PackedFormat format,
            char operand,
            bool transpose) {
  std::vector<Tensor> in;
  in.push_back(x.clone());
  const PackedNode node("PackOperand",
                        std::move(in),
                        {{"T", x.dtype()},
                         {"dtype", format.dtype},
                         {"parts", format.parts},
                         {"side", std::string(1, operand)},
                         {"transpose", transpose}});
  return std::move(node.run(packed::prepare_pack(node.view(), blocks))[0]);
}

std::vector<const packed::BlockKernels*> block_tables() {
  const backend::Isa machine = backend::cpu_backend(2).capabilities.isa;
  std::vector<const packed::BlockKernels*> tables{&packed::portable_block_kernels()};
  for (const backend::Isa isa : {backend::Isa::avx512, backend::Isa::avx512_bf16}) {
    if (isa <= machine) tables.push_back(&packed::block_kernels(isa));
  }
  return tables;
}

double packed_value(const Tensor& tensor,
                    const packed::Layout& layout,
                    char operand,
                    std::int64_t row,
                    std::int64_t k) {
  double sum = 0;
  for (std::int64_t p = 0; p < layout.format.parts; ++p) {
    std::uint16_t bits;
    std::memcpy(&bits,
                tensor.as<std::byte>() + layout.k_block_offset(row / 32, k / 32) + p * 2048 +
                    packed::offset_in_part(operand_of(operand), row % 32, k % 32),
                sizeof bits);
    const bool whole = layout.format == graph::ops::PackedFormat{DType::float16, 1};
    sum += static_cast<double>(whole ? static_cast<float>(float16::of_bits(bits))
                                     : static_cast<float>(bfloat16::of_bits(bits)));
  }
  return sum;
}

std::vector<Runner> runners() {
  using graph::ops::PackedFormat;
  static const backend::Capabilities k_machine = backend::cpu_backend(2).capabilities;
  const auto whole = [](PackedFormat format) { return format.parts == 1; };
  const auto in_bfloat16 = [](PackedFormat format) {
    return format != PackedFormat{DType::float16, 1};
  };
  std::vector<Runner> all;
  for (const packed::BlockKernels* blocks : block_tables()) {
    const std::string with =
        blocks == &packed::portable_block_kernels() ? "" : " with vector blocks";
    all.push_back({"emulated tiles" + with,
                   [blocks](const backend::NodeView& node, int threads) {
                     return packed::prepare_matmul(node, k_emulated_tiles, *blocks, threads);
                   },
                   in_bfloat16});
    all.push_back({"emulated fma" + with,
                   [blocks](const backend::NodeView& node, int threads) {
                     return packed::prepare_matmul(node, k_emulated_fma, *blocks, threads);
                   },
                   whole});
  }
  const auto add = [&](const backend::Kernel& kernel, backend::Isa needed, auto takes) {
    if (kernel.op != "PackedMatMul" || k_machine.isa < needed) return;
    all.push_back({std::string(kernel.name),
                   [&kernel](const backend::NodeView& node, int threads) {
                     return kernel.prepare(node, {.isa = k_machine.isa, .threads = threads});
                   },
                   takes});
  };
  for (const backend::Kernel& kernel : backend::cpu::packed_kernels()) {
    if (kernel.name == "packed/amx"sv) add(kernel, backend::Isa::amx, in_bfloat16);
    if (kernel.name == "packed/avx512 by float32"sv) add(kernel, backend::Isa::avx512, whole);
    if (kernel.name == "packed/avx512_bf16"sv) {
      add(kernel, backend::Isa::avx512_bf16, [](PackedFormat f) { return f == PackedFormat{}; });
    }
  }
  for (const backend::Kernel& kernel : backend::cpu::reference_kernels()) {
    add(kernel, backend::Isa::baseline, [](PackedFormat) { return true; });
  }
  return all;
}

PackedMatMul::PackedMatMul(const MatMulCase& matmul)
    : c(matmul),
      a(random_tensor(c.dtype, {c.m, c.k}, 1)),
      b(random_tensor(c.dtype, {c.k, c.n}, 2)) {
  if (c.bias) args.push_back(random_tensor(DType::float32, {c.n}, 3));
  if (c.mask) args.push_back(random_mask(c.m, c.n));
}

Tensor PackedMatMul::packed_a(const Tensor& x, bool transpose) const {
  return pack(packed::portable_block_kernels(), x, c.format(), 'a', transpose);
}

PackedNode PackedMatMul::node(const Tensor& operand_a, bool transpose_a) const {
  std::vector<Tensor> in;
  in.push_back(operand_a.clone());
  in.push_back(pack(packed::portable_block_kernels(), b, c.format(), 'b', false));
  std::vector<DType> arg_types;
  for (const Tensor& arg : args) {
    in.push_back(arg.clone());
    arg_types.push_back(arg.dtype());
  }
  std::vector<DType> result_types;
  for (const char form : k_outputs) {
    result_types.push_back(graph::ops::packed_result_dtype(form, c.dtype));
  }
  return PackedNode("PackedMatMul",
                    std::move(in),
                    {{"T", c.dtype},
                     {"Targs", arg_types},
                     {"Tresults", result_types},
                     {"m", c.m},
                     {"n", c.n},
                     {"k", c.k},
                     {"transpose_a", transpose_a},
                     {"products", c.products},
                     {"bias", c.bias},
                     {"activation", std::string(c.relu ? "Relu" : "")},
                     {"mask", c.mask},
                     {"forms", std::string(k_outputs)}});
}

std::vector<Tensor> PackedMatMul::run(const Runner& runner, int threads) const {
  const PackedNode n = node();
  return n.run(runner.prepare(n.view(), threads));
}

void PackedMatMul::check(const std::vector<Tensor>& results) const {
  const auto& [rounded, widened, unrounded, column_sums, as_a, transposed, as_b, signs, norms] =
      std::tie(results[0],
               results[1],
               results[2],
               results[3],
               results[4],
               results[5],
               results[6],
               results[7],
               results[8]);
  const auto y = [&, &rounded = rounded](std::int64_t i, std::int64_t j) {
    return element_as_double(rounded.view(), i * c.n + j);
  };
  // With three partial products low times low is missing, each at most 2^-9 of its value.
  const double omitted = c.products == 3 ? 0x1p-18 : 0;
  const std::vector<double> x_a = values(a);
  const std::vector<double> x_b = values(b);
  std::int64_t misses = 0;
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double want = 0;
      double magnitude = 0;
      for (std::int64_t k = 0; k < c.k; ++k) {
        const double term = x_a[i * c.k + k] * x_b[k * c.n + j];
        want += term;
        magnitude += std::abs(term);
      }
      if (c.bias) want += element_as_double(args[0].view(), j);
      if (c.relu) want = std::max(want, 0.0);
      if (c.mask && !bit(args.back(), c.n, i, j)) want = 0;
      const std::int64_t terms = c.k * c.products + 2;
      const double allowed = tolerance(DType::float32, DType::float32, terms, magnitude + 1, want) +
                             omitted * magnitude;
      const double got = unrounded.as<float>()[i * c.n + j];
      misses += std::abs(got - want) <= allowed ? 0 : 1;
      misses += testing::rounded(c.dtype, got) == y(i, j) ? 0 : 1;
      misses += widened.as<float>()[i * c.n + j] == y(i, j) ? 0 : 1;
      misses += bit(signs, c.n, i, j) == (y(i, j) > 0) ? 0 : 1;
    }
  }
  CHECK(misses == 0);
  check_norms(norms, c.m, c.n, y);
  check_packed(as_a, c.m, c.n, c.format(), 'a', y);
  check_packed(transposed, c.n, c.m, c.format(), 'a', [&](auto j, auto i) { return y(i, j); });
  check_packed(as_b, c.n, c.m, c.format(), 'b', [&](auto j, auto i) { return y(i, j); });
  for (std::int64_t j = 0; j < c.n; ++j) {
    double sum = 0;
    double magnitude = 0;
    for (std::int64_t i = 0; i < c.m; ++i) {
      sum += y(i, j);
      magnitude += std::abs(y(i, j));
    }
    const double got = element_as_double(column_sums.view(), j);
    CHECK(std::abs(got - sum) <= tolerance(c.dtype, DType::float32, c.m, magnitude, sum));
  }
}

}  // namespace halfstep::testing

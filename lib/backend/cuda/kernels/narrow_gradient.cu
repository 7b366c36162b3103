#include "backend/cuda/kernels/narrow_gradient.h"

#include <algorithm>
#include <cmath>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/element.h"

namespace halfstep::backend::cuda::kernels {
namespace {

constexpr unsigned k_threads = 256;
constexpr int k_pack = static_cast<int>(NarrowGradientParams::k_multiple);
constexpr unsigned k_max_packs = 64;  ///< of inputs in a block
constexpr int k_chunk = 256;          ///< rows of dy in shared memory
constexpr int k_in_flight = 8;        ///< rows of x that a thread loads while it multiplies others

template <class T>
struct NarrowGradient {
  const T* x;
  const T* dy;
  T* dw;
  T* dbias;
  float* parts;  ///< [part, input, output], and behind them [part, output]
  std::int64_t rows, inputs, outputs;
  std::int64_t length;  ///< rows of a part
  std::int64_t count;   ///< parts
  unsigned packs;       ///< of inputs in a block, a power of two
  unsigned* tickets;    ///< one for each block of inputs
};

/// A thread sums `outputs` products of k_pack inputs over one row of the part in 256 / packs; the
/// block adds those sums, and the last block of some inputs the parts.
template <int outputs, class T>
__global__ void HALFSTEP_BLOCK_OF(k_threads, 2) narrow_gradient_kernel(NarrowGradient<T> g) {
  using Pair = Pack<float, 2>;  // read by one load
  HALFSTEP_SHARED(Pair, dy, k_chunk * outputs / 2);
  HALFSTEP_SHARED(float, values, k_threads / 2 * k_pack);
  const int lanes = static_cast<int>(k_threads / g.packs);
  const int lane = static_cast<int>(thread() / g.packs);
  const std::int64_t input = (block() * g.packs + thread() % g.packs) * k_pack;
  const std::int64_t end = std::min((row() + 1) * g.length, g.rows);
  float sum[outputs][k_pack] = {};
  float dy_sum = 0;
  for (std::int64_t begin = row() * g.length; begin < end; begin += k_chunk) {
    const int rows = end - begin < k_chunk ? static_cast<int>(end - begin) : k_chunk;
    const T* const x = g.x + begin * g.inputs + input;
    const auto load_rows = [&](int first, Pack<T, k_pack>(&to)[k_in_flight]) {
      for (int u = 0; u < k_in_flight; ++u) {
        const int k = first + u * lanes;
        to[u] = k < rows && input < g.inputs ? load_pack<T, k_pack>(x + k * g.inputs)
                                             : Pack<T, k_pack>{};
      }
    };
    Pack<T, k_pack> next[k_in_flight];
    load_rows(lane, next);
    for (int i = static_cast<int>(thread()); i < k_chunk * outputs; i += k_threads) {
      const int output = i % outputs, k = i / outputs;
      const bool exists = output < g.outputs && k < rows;
      dy[i / 2].element[i % 2] = exists ? load(g.dy[(begin + k) * g.outputs + output]) : 0.0F;
    }
    sync_block();
    for (int first = lane; first < rows; first += k_in_flight * lanes) {
      Pack<T, k_pack> now[k_in_flight];
      for (int u = 0; u < k_in_flight; ++u) now[u] = next[u];
      load_rows(first + k_in_flight * lanes, next);
      for (int u = 0; u < k_in_flight; ++u) {
        // Rows of dy beyond the last are zeros; those beyond the chunk are not multiplied.
        const int k = first + u * lanes;
        if (k >= k_chunk) break;
        for (int o = 0; o < outputs; o += 2) {
          const Pair factor = dy[(k * outputs + o) / 2];
          for (int n = 0; n < 2; ++n) {
            for (int i = 0; i < k_pack; ++i) {
              float& to = sum[o + n][i];
              to = std::fma(load(now[u].element[i]), factor.element[n], to);
            }
          }
        }
      }
    }
    if (block() == 0 && thread() < g.outputs) {
      const auto output = static_cast<int>(thread());
      for (int k = 0; k < rows; ++k) {
        dy_sum += dy[(k * outputs + output) / 2].element[output % 2];
      }
    }
    sync_block();
  }
  for (int half = lanes / 2; half > 0; half /= 2) {
    const unsigned at = lane % half * g.packs + thread() % g.packs;
    for (int o = 0; o < outputs; ++o) {
      for (int i = 0; i < k_pack; ++i) {
        if (lane >= half && lane < 2 * half) values[i * (k_threads / 2) + at] = sum[o][i];
      }
      sync_block();
      for (int i = 0; i < k_pack; ++i) {
        if (lane < half) sum[o][i] += values[i * (k_threads / 2) + at];
      }
      sync_block();
    }
  }
  const std::int64_t elements = g.inputs * g.outputs;
  float* const dy_sums = g.parts + g.count * elements;
  if (lane == 0 && input < g.inputs) {
    float* part = g.parts + row() * elements + input * g.outputs;
    for (int i = 0; i < k_pack; ++i) {
      for (int o = 0; o < outputs; ++o) {
        if (o < g.outputs) part[i * g.outputs + o] = sum[o][i];
      }
    }
  }
  if (block() == 0 && thread() < g.outputs) dy_sums[row() * g.outputs + thread()] = dy_sum;
  if (!is_last_block(g.tickets + block(), g.count)) return;
  const std::int64_t first = block() * g.packs * k_pack * g.outputs;
  const std::int64_t last = std::min(first + g.packs * k_pack * g.outputs, elements);
  const auto total = [&](const float* of_part, std::int64_t stride) {
    // Four chains, whose loads are under way together.
    float merged[4] = {};
    for (std::int64_t p = 0; p < g.count; p += 4) {
      for (int n = 0; n < 4; ++n) {
        if (p + n < g.count) merged[n] += of_part[(p + n) * stride];
      }
    }
    return store<T>((merged[0] + merged[1]) + (merged[2] + merged[3]));
  };
  for (std::int64_t i = first + thread(); i < last; i += k_threads) {
    g.dw[i] = total(g.parts + i, elements);
  }
  if (block() == 0 && thread() < g.outputs)
    g.dbias[thread()] = total(dy_sums + thread(), g.outputs);
}

/// The blocks of inputs, and the parts of the rows: about two blocks for each multiprocessor of an
/// H100, and at least eight rows for each thread.
struct NarrowPlan {
  unsigned packs = 1;
  std::int64_t blocks, length, count;

  explicit NarrowPlan(const NarrowGradientParams& p) {
    constexpr std::int64_t k_blocks = 264, k_rows = 8;
    const auto ceil_div = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
    while (packs < k_max_packs && packs * k_pack < p.inputs) packs *= 2;
    blocks = ceil_div(p.inputs, packs * k_pack);
    const std::int64_t lanes = k_threads / packs;
    const std::int64_t wanted =
        std::max(std::min(k_blocks / blocks, p.rows / (lanes * k_rows)), std::int64_t{1});
    length = std::max(ceil_div(p.rows, wanted), std::int64_t{1});
    count = std::max(ceil_div(p.rows, length), std::int64_t{1});
  }
};

/// Calls f with the type of the elements. Errors: LaunchError for a dtype without a kernel.
template <class F>
void with_half(DType dtype, F&& f) {
  if (dtype == DType::float16) return f(Type<float16>{});
  if (dtype == DType::bfloat16) return f(Type<bfloat16>{});
  refuse(dtype);
}

/// Calls f with the least even number of outputs that is not below `outputs`, as a constant.
template <int outputs = 2, class F>
void with_outputs(std::int64_t wanted, F&& f) {
  if (wanted <= outputs) return f(std::integral_constant<int, outputs>{});
  if constexpr (outputs < NarrowGradientParams::k_max_outputs) {
    return with_outputs<outputs + 2>(wanted, f);
  }
}

}  // namespace

std::size_t narrow_gradient_workspace(const NarrowGradientParams& p) {
  const NarrowPlan plan(p);
  return static_cast<std::size_t>(plan.count * (p.inputs + 1) * p.outputs) * sizeof(float);
}

void narrow_gradient(Stream stream, const NarrowGradientParams& p) {
  const NarrowPlan plan(p);
  with_half(p.dtype, [&]<class T>(Type<T>) {
    const NarrowGradient<T> gradient{.x = static_cast<const T*>(p.x),
                                     .dy = static_cast<const T*>(p.dy),
                                     .dw = static_cast<T*>(p.dw),
                                     .dbias = static_cast<T*>(p.dbias),
                                     .parts = static_cast<float*>(p.workspace),
                                     .rows = p.rows,
                                     .inputs = p.inputs,
                                     .outputs = p.outputs,
                                     .length = plan.length,
                                     .count = plan.count,
                                     .packs = plan.packs,
                                     .tickets = p.tickets.data};
    with_outputs(p.outputs, [&]<int outputs>(std::integral_constant<int, outputs>) {
      launch(narrow_gradient_kernel<outputs, T>,
             {.blocks = plan.blocks, .rows = plan.count, .threads = k_threads, .cooperates = true},
             stream,
             gradient);
    });
  });
}

}  // namespace halfstep::backend::cuda::kernels

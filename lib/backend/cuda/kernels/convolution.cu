#include <algorithm>
#include <cmath>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/device/windows.h"
#include "backend/cuda/kernels/few_taps.h"

namespace halfstep::backend::cuda::kernels {
namespace {

constexpr unsigned k_threads = 256;
constexpr int k_positions = 4;  ///< of a thread, for each of which it loads a cell per tap

template <class T>
struct Convolution {
  Windows<T> windows;
  const T* filter;
  const T* bias;  ///< or null
  T* y;
  std::int64_t outputs;
  unsigned packs;  ///< of output channels in a block
  bool relu;
};

/// `width` output channels at k_positions positions in turn for each thread, which read the filter
/// of the block's channels from shared memory.
template <int width, class T>
__global__ void HALFSTEP_BLOCK_OF(k_threads, 2) convolution_kernel(Convolution<T> c) {
  constexpr int k_words = width < 4 ? width : 4;  // that are read by one load
  using Words = Pack<float, k_words>;
  HALFSTEP_SHARED(Words, words, FewTaps::k_max * k_max_packs * width / k_words);
  auto* const filter = reinterpret_cast<float*>(words);
  const unsigned of_block = c.packs * width;
  const std::int64_t first = row() * of_block;
  for (unsigned i = thread(); i < c.windows.taps * of_block; i += k_threads) {
    const std::int64_t output = first + i % of_block;
    filter[i] = output < c.outputs ? load(c.filter[i / of_block * c.outputs + output]) : 0.0F;
  }
  sync_block();
  const unsigned step = k_threads / c.packs;
  const std::int64_t output = first + thread() % c.packs * width;
  if (output >= c.outputs) return;
  float bias[width] = {};
  if (c.bias != nullptr) {
    for (int j = 0; j < width; ++j) bias[j] = load(c.bias[output + j]);
  }
  const float* weights = filter + thread() % c.packs * width;
  const std::int64_t of_grid = blocks() * step * k_positions;
  for (std::int64_t from = (block() * step + thread() / c.packs) * k_positions;
       from < c.windows.positions;
       from += of_grid) {
    const std::int64_t rest = c.windows.positions - from;
    Window<T> window[k_positions];
    window[0] = c.windows.at(from);
    bool whole = c.windows.whole(window[0]);
    for (int i = 1; i < k_positions; ++i) {
      window[i] = i < rest ? c.windows.after(window[i - 1]) : window[i - 1];
      whole = whole && c.windows.whole(window[i]);
    }
    float sum[k_positions][width] = {};
    const auto add = [&](int t, const auto& cell_of) {
      T x[k_positions];
      for (int i = 0; i < k_positions; ++i) x[i] = cell_of(window[i]);
      for (int j = 0; j < width; j += k_words) {
        const auto w = load_pack<float, k_words>(weights + t * of_block + j);
        for (int i = 0; i < k_positions; ++i) {
          for (int k = 0; k < k_words; ++k) {
            sum[i][j + k] = std::fma(load(x[i]), w.element[k], sum[i][j + k]);
          }
        }
      }
    };
    if (whole) {
      for (int t = 0; t < c.windows.taps; ++t) {
        const std::int32_t offset = c.windows.tap[t].offset;
        add(t, [&](const Window<T>& of) { return of.first[offset]; });
      }
    } else {
      for (int t = 0; t < c.windows.taps; ++t) {
        add(t, [&](const Window<T>& of) { return c.windows.cell(of, t); });
      }
    }
    for (int i = 0; i < k_positions && i < rest; ++i) {
      Pack<T, width> y;
      for (int j = 0; j < width; ++j) {
        const float value = sum[i][j] + bias[j];
        y.element[j] = store<T>(c.relu && value < 0 ? 0.0F : value);
      }
      store_pack(c.y + (from + i) * c.outputs + output, y);
    }
  }
}

template <int width, class T>
void run(Stream stream, Convolution<T> c) {
  // Four blocks for each multiprocessor of an H100: a block copies its part of the filter once.
  constexpr std::int64_t k_max_blocks = 528;
  c.packs = packs_of(c.outputs, width);
  const std::int64_t of_block = std::int64_t{c.packs} * width;
  const std::int64_t positions = k_positions * std::int64_t{k_threads / c.packs};
  launch(convolution_kernel<width, T>,
         {.blocks = std::min((c.windows.positions + positions - 1) / positions, k_max_blocks),
          .rows = (c.outputs + of_block - 1) / of_block,
          .threads = k_threads,
          .cooperates = true},
         stream,
         c);
}

}  // namespace

void few_taps_convolution(Stream stream, const FewTapsConvolutionParams& p) {
  dispatch_matmul(p.taps.dtype, [&]<class T>(Type<T>) {
    constexpr int k_width = k_pack_width<T>;
    const Convolution<T> c{.windows = {p.taps.geometry, p.x},
                           .filter = static_cast<const T*>(p.filter),
                           .bias = static_cast<const T*>(p.bias),
                           .y = static_cast<T*>(p.y),
                           .outputs = p.taps.geometry.outputs,
                           .packs = 1,
                           .relu = p.relu};
    if (c.outputs % k_width == 0 && aligned(p.y, 16)) {
      run<k_width>(stream, c);
    } else {
      run<1>(stream, c);
    }
  });
}

}  // namespace halfstep::backend::cuda::kernels

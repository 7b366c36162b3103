#include <algorithm>
#include <cmath>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/fold.h"
#include "backend/cuda/kernels/device/map.h"
#include "backend/cuda/kernels/device/windows.h"
#include "backend/cuda/kernels/few_taps.h"

namespace halfstep::backend::cuda::kernels {
namespace {

constexpr unsigned k_threads = 256;
constexpr int k_taps = 9;  ///< of a block, for which there are registers

template <class T>
struct FilterSums {
  Windows<T> windows;
  const T* dy;
  float* parts;            ///< [part, tap, output]; at the first tap of the windows
  std::int64_t part_step;  ///< elements of a part
  std::int64_t outputs;
  std::int64_t length;  ///< positions of a part
  unsigned packs;       ///< of output channels in a block, a power of two
  int tap_blocks;       ///< blocks for all taps of an output
};

/// The operands of one position: dy of the thread's outputs, and the cell under each of its taps.
template <class T, int width>
struct Operands {
  Pack<T, width> dy;
  T x[k_taps];
};

template <int width, class T>
__device__ inline Operands<T, width> operands_at(const FilterSums<T>& c,
                                                 std::int64_t position,
                                                 std::int64_t output,
                                                 int first_tap) {
  Operands<T, width> loaded;
  loaded.dy = load_pack<T, width>(c.dy + position * c.outputs + output);
  const Window<T> window = c.windows.at(position);
  for (int t = 0; t < k_taps; ++t) {
    loaded.x[t] = c.windows.cell(window, first_tap + t, first_tap + t < c.windows.taps);
  }
  return loaded;
}

/// The sums of k_taps taps over one part of the positions, of which a thread has one in 256 /
/// packs.
template <int width, class T>
__global__ void HALFSTEP_BLOCK_OF(k_threads, 2) filter_gradient_kernel(FilterSums<T> c) {
  const unsigned pack = thread() % c.packs;
  const unsigned step = k_threads / c.packs;
  const std::int64_t column_blocks = blocks() / c.tap_blocks;
  const std::int64_t first = block() % column_blocks * c.packs * width;
  const std::int64_t output = first + pack * width;
  const int first_tap = static_cast<int>(block() / column_blocks) * k_taps;
  const std::int64_t end = std::min((row() + 1) * c.length, c.windows.positions);
  float sum[k_taps][width] = {};
  std::int64_t position = row() * c.length + thread() / c.packs;
  if (output < c.outputs && position < end) {
    auto now = operands_at<width>(c, position, output, first_tap);
    for (;;) {
      // The next operands are loaded while these are multiplied.
      const std::int64_t following = position + step;
      Operands<T, width> next = now;
      if (following < end) next = operands_at<width>(c, following, output, first_tap);
      for (int i = 0; i < width; ++i) {
        const float dy = load(now.dy.element[i]);
        for (int t = 0; t < k_taps; ++t) sum[t][i] = std::fma(load(now.x[t]), dy, sum[t][i]);
      }
      if (following >= end) break;
      now = next;
      position = following;
    }
  }
  HALFSTEP_SHARED(float, values, k_threads* width);
  const unsigned of_tap = c.packs * width;
  for (int t = 0; t < k_taps; ++t) {
    for (int i = 0; i < width; ++i) values[i * k_threads + thread()] = sum[t][i];
    sync_block();
    const std::int64_t tap = first_tap + t, at = first + thread();
    if (thread() < of_tap && tap < c.windows.taps && at < c.outputs) {
      const float* of_output = values + thread() % width * k_threads + thread() / width;
      float total = 0;
      for (unsigned lane = 0; lane < step; ++lane) total += of_output[lane * c.packs];
      c.parts[row() * c.part_step + tap * c.outputs + at] = total;
    }
    sync_block();
  }
}

/// The sums of all parts, rounded to T.
template <class T>
struct PartFold : Rows<float> {
  using Value = float;
  T* filter;

  __device__ Value first() const { return 0; }
  template <int width>
  __device__ Value add(Value sum, const Pack<float, width>& pack, int i, std::int64_t) const {
    return sum + pack.element[i];
  }
  __device__ Value merge(Value a, Value b) const { return a + b; }
  __device__ void finish(std::int64_t i, Value sum) const { filter[i] = store<T>(sum); }
};

/// The parts of the sums: about two blocks for each multiprocessor of an H100, at least eight
/// positions for each thread, and 32 MiB at most.
struct Parts {
  std::int64_t taps, elements, length, count;

  explicit Parts(const graph::ops::ConvGeometry& g)
      : taps(g.window.height.size * g.window.width.size * g.inputs), elements(taps * g.outputs) {
    constexpr std::int64_t k_blocks = 264, k_positions = 512, k_max_sums = 1 << 23;
    const std::int64_t positions = g.batch * g.window.height.output * g.window.width.output;
    const std::int64_t most = std::min(k_blocks, k_max_sums / std::max<std::int64_t>(elements, 1));
    const std::int64_t wanted =
        std::clamp(positions / k_positions, std::int64_t{1}, std::max(most, std::int64_t{1}));
    length = (positions + wanted - 1) / wanted;
    count = (positions + length - 1) / length;
  }
  std::size_t bytes() const {
    return (static_cast<std::size_t>(count * elements) * sizeof(float) + 15) / 16 * 16;
  }
  FoldPlan plan() const { return {count, elements}; }
};

template <int width, class T>
void run(Stream stream, FilterSums<T> c, std::int64_t parts) {
  c.packs = packs_of(c.outputs, width);
  const std::int64_t of_block = std::int64_t{c.packs} * width;
  launch(filter_gradient_kernel<width, T>,
         {.blocks = (c.outputs + of_block - 1) / of_block * c.tap_blocks,
          .rows = parts,
          .threads = k_threads,
          .cooperates = true},
         stream,
         c);
}

}  // namespace

std::size_t filter_gradient_workspace(const FewTaps& taps) {
  const Parts parts(taps.geometry);
  return parts.bytes() + parts.plan().workspace_bytes<PartFold<float>>();
}

void filter_gradient(Stream stream, const FilterGradientParams& p) {
  const Parts parts(p.taps.geometry);
  dispatch_matmul(p.taps.dtype, [&]<class T>(Type<T>) {
    constexpr int k_width = k_pack_width<T>;
    const std::int64_t outputs = p.taps.geometry.outputs;
    for (std::int64_t tap = 0; tap < parts.taps; tap += FewTaps::k_max) {
      const Windows<T> windows(p.taps.geometry, p.x, tap);
      const FilterSums<T> c{.windows = windows,
                            .dy = static_cast<const T*>(p.dy),
                            .parts = static_cast<float*>(p.workspace) + tap * outputs,
                            .part_step = parts.elements,
                            .outputs = outputs,
                            .length = parts.length,
                            .packs = 1,
                            .tap_blocks = (windows.taps + k_taps - 1) / k_taps};
      if (outputs % k_width == 0 && aligned(p.dy, 16)) {
        run<k_width>(stream, c, parts.count);
      } else {
        run<1>(stream, c, parts.count);
      }
    }
    run_fold(stream,
             PartFold<T>{{static_cast<const float*>(p.workspace)}, static_cast<T*>(p.filter)},
             parts.plan(),
             static_cast<std::uint8_t*>(p.workspace) + parts.bytes(),
             p.tickets);
  });
}

}  // namespace halfstep::backend::cuda::kernels

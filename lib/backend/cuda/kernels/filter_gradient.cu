#include "backend/cuda/kernels/filter_gradient.h"

#include <algorithm>
#include <cmath>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/fold.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

constexpr unsigned k_threads = 256;
constexpr unsigned k_most_packs = 8;  ///< of output channels in a block
constexpr int k_taps = 9;             ///< of a block, for which there are registers

/// A tap of the filter: its cell from the first one of a window, and its offset from that.
struct Tap {
  std::int32_t row, column, offset;
};

template <class T>
struct Convolved {
  const T* x;
  const T* dy;
  float* parts;  ///< [part, tap, output]
  std::int64_t positions, outputs;
  std::int64_t out_height, out_width, channels;
  std::int32_t height, width, stride_y, stride_x, pad_y, pad_x;
  std::int64_t length;  ///< positions of a part
  unsigned packs;       ///< of output channels in a block, a power of two
  int taps;
  int tap_blocks;  ///< blocks for all taps of an output
  Tap tap[FilterGradientParams::k_most_taps];
};

/// The operands of one position: dy of the thread's outputs, and the cell under each of its taps.
template <class T, int width>
struct Operands {
  Pack<T, width> dy;
  T x[k_taps];
};

template <int width, class T>
__device__ inline Operands<T, width> operands_at(const Convolved<T>& c,
                                                 std::int64_t position,
                                                 std::int64_t output,
                                                 int first_tap) {
  Operands<T, width> loaded;
  loaded.dy = load_pack<T, width>(c.dy + position * c.outputs + output);
  const Divided row = divide(position, c.out_width);
  const Divided image = divide(row.quotient, c.out_height);
  const auto y = static_cast<std::int32_t>(image.remainder) * c.stride_y - c.pad_y;
  const auto x = static_cast<std::int32_t>(row.remainder) * c.stride_x - c.pad_x;
  const T* window = c.x + ((image.quotient * c.height + y) * c.width + x) * c.channels;
  for (int t = 0; t < k_taps; ++t) {
    const Tap& tap = c.tap[first_tap + t];
    // A cell before the first one is a large unsigned number.
    const auto cell_y = static_cast<std::uint32_t>(y + tap.row);
    const auto cell_x = static_cast<std::uint32_t>(x + tap.column);
    const bool inside = first_tap + t < c.taps && cell_y < static_cast<std::uint32_t>(c.height) &&
                        cell_x < static_cast<std::uint32_t>(c.width);
    loaded.x[t] = inside ? window[tap.offset] : T{};
  }
  return loaded;
}

/// The sums of k_taps taps over one part of the positions, of which a thread has one in 256 /
/// packs.
template <int width, class T>
__global__ void HALFSTEP_BLOCK_OF(k_threads, 2) filter_gradient_kernel(Convolved<T> c) {
  const unsigned pack = thread() % c.packs;
  const unsigned step = k_threads / c.packs;
  const std::int64_t column_blocks = blocks() / c.tap_blocks;
  const std::int64_t first = block() % column_blocks * c.packs * width;
  const std::int64_t output = first + pack * width;
  const int first_tap = static_cast<int>(block() / column_blocks) * k_taps;
  const std::int64_t end = std::min((row() + 1) * c.length, c.positions);
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
    if (thread() < of_tap && tap < c.taps && at < c.outputs) {
      const float* of_output = values + thread() % width * k_threads + thread() / width;
      float total = 0;
      for (unsigned lane = 0; lane < step; ++lane) total += of_output[lane * c.packs];
      c.parts[(row() * c.taps + tap) * c.outputs + at] = total;
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

/// The parts of the sums: about two blocks for each multiprocessor of an H100, and at least eight
/// positions for each thread.
struct Parts {
  std::int64_t positions, length, count, elements;

  explicit Parts(const FilterGradientParams& p)
      : positions(p.batch * p.height.output * p.width.output),
        elements(p.height.size * p.width.size * p.channels * p.outputs) {
    constexpr std::int64_t k_blocks = 264, k_positions = 512;
    const std::int64_t wanted = std::clamp(positions / k_positions, std::int64_t{1}, k_blocks);
    length = (positions + wanted - 1) / wanted;
    count = (positions + length - 1) / length;
  }
  std::size_t bytes() const {
    return (static_cast<std::size_t>(count * elements) * sizeof(float) + 15) / 16 * 16;
  }
  FoldPlan plan() const { return {count, elements}; }
};

std::int32_t narrow(std::int64_t n) { return static_cast<std::int32_t>(n); }

template <class T>
Convolved<T> convolved(const FilterGradientParams& p, const Parts& parts) {
  Convolved<T> c{.x = static_cast<const T*>(p.x),
                 .dy = static_cast<const T*>(p.dy),
                 .parts = static_cast<float*>(p.workspace),
                 .positions = parts.positions,
                 .outputs = p.outputs,
                 .out_height = p.height.output,
                 .out_width = p.width.output,
                 .channels = p.channels,
                 .height = narrow(p.height.input),
                 .width = narrow(p.width.input),
                 .stride_y = narrow(p.height.stride),
                 .stride_x = narrow(p.width.stride),
                 .pad_y = narrow(p.height.pad_before),
                 .pad_x = narrow(p.width.pad_before),
                 .length = parts.length,
                 .packs = 1,
                 .taps = 0,
                 .tap_blocks = 0,
                 .tap = {}};
  for (std::int64_t r = 0; r < p.height.size; ++r) {
    for (std::int64_t s = 0; s < p.width.size; ++s) {
      const std::int64_t y = r * p.height.dilation, x = s * p.width.dilation;
      for (std::int64_t channel = 0; channel < p.channels; ++channel) {
        c.tap[c.taps++] = {
            narrow(y), narrow(x), narrow((y * p.width.input + x) * p.channels + channel)};
      }
    }
  }
  return c;
}

template <int width, class T>
void run(Stream stream, Convolved<T> c, std::int64_t parts) {
  while (c.packs < k_most_packs && c.packs * width < c.outputs) c.packs *= 2;
  const std::int64_t of_block = std::int64_t{c.packs} * width;
  launch(filter_gradient_kernel<width, T>,
         {.blocks = (c.outputs + of_block - 1) / of_block * c.tap_blocks,
          .rows = parts,
          .threads = k_threads,
          .cooperates = true},
         stream,
         c);
}

/// Calls f with the type of the elements. Errors: InternalError for a dtype without a kernel.
template <class F>
void with_dtype(DType dtype, F&& f) {
  if (dtype == DType::float32) return f(Type<float>{});
  if (dtype == DType::float16) return f(Type<float16>{});
  if (dtype == DType::bfloat16) return f(Type<bfloat16>{});
  refuse(dtype);
}

}  // namespace

std::size_t filter_gradient_workspace(const FilterGradientParams& p) {
  const Parts parts(p);
  return parts.bytes() + parts.plan().workspace_bytes<PartFold<float>>();
}

void filter_gradient(Stream stream, const FilterGradientParams& p) {
  const Parts parts(p);
  with_dtype(p.dtype, [&]<class T>(Type<T>) {
    constexpr int k_width = k_pack_width<T>;
    Convolved<T> c = convolved<T>(p, parts);
    c.tap_blocks = (c.taps + k_taps - 1) / k_taps;
    if (p.outputs % k_width == 0 && aligned(p.dy, 16)) {
      run<k_width>(stream, c, parts.count);
    } else {
      run<1>(stream, c, parts.count);
    }
    run_fold(stream,
             PartFold<T>{{c.parts}, static_cast<T*>(p.filter)},
             parts.plan(),
             static_cast<std::uint8_t*>(p.workspace) + parts.bytes(),
             p.tickets);
  });
}

}  // namespace halfstep::backend::cuda::kernels

#include "backend/cuda/kernels/norm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/fold.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

/// mean[c] = sum of x / rows.
template <class T>
struct MeanFold {
  using C = Compute<T>;
  using Value = C;
  static constexpr int k_width = k_pack_width<T>;
  const T* x;
  C rows;
  C* mean;

  bool packed() const { return aligned(x, 16); }
  __device__ Value first() const { return 0; }
  template <int width>
  __device__ Pack<T, width> load(std::int64_t offset) const {
    return load_pack<T, width>(x + offset);
  }
  template <int width>
  __device__ Value add(Value sum, const Pack<T, width>& pack, int i, std::int64_t) const {
    return sum + kernels::load(pack.element[i]);
  }
  __device__ Value merge(Value a, Value b) const { return a + b; }
  __device__ void finish(std::int64_t c, Value sum) const { mean[c] = sum / rows; }
};

/// A vector of statistics with a dtype known at run time; short, so the dispatch per element is
/// cheap.
template <class Pointer>
struct Vector {
  DType dtype;
  Pointer data;

  template <class C>
  __device__ C get(std::int64_t i) const {
    switch (dtype) {
      case DType::float32:
        return static_cast<C>(static_cast<const float*>(data)[i]);
      case DType::float64:
        return static_cast<C>(static_cast<const double*>(data)[i]);
      default:
        return static_cast<C>(load(static_cast<const bfloat16*>(data)[i]));
    }
  }
  /// Nothing where there is no vector.
  template <class C>
  __device__ void set(std::int64_t i, C x) const {
    if (data == nullptr) return;
    switch (dtype) {
      case DType::float32:
        static_cast<float*>(data)[i] = static_cast<float>(x);
        break;
      case DType::float64:
        static_cast<double*>(data)[i] = static_cast<double>(x);
        break;
      default:
        static_cast<bfloat16*>(data)[i] = store<bfloat16>(x);
    }
  }
};
using Read = Vector<const void*>;
using Written = Vector<void*>;

/// Mean, gain and offset of a channel, from which y is computed.
template <class C>
struct Channel {
  C mean, gain, offset;
};

/// The statistics of BatchNormParams.
struct Statistics {
  Read scale, offset, mean, variance;
  Written new_mean, new_variance, saved_mean, saved_variance, reserved;

  explicit Statistics(const BatchNormParams& p)
      : scale{p.statistics, p.scale},
        offset{p.statistics, p.offset},
        mean{p.statistics, p.mean},
        variance{p.statistics, p.variance},
        new_mean{p.statistics, p.new_mean},
        new_variance{p.statistics, p.new_variance},
        saved_mean{p.statistics, p.saved_mean},
        saved_variance{p.statistics, p.saved_variance},
        reserved{p.statistics, p.reserved} {}
};

/// Sets the results of a channel from its mean and variance; `rows` is 0 where they are given.
template <class C>
struct Finish {
  Statistics s;
  Channel<C>* channels;
  C rows, epsilon, factor;

  __device__ void operator()(std::int64_t c, C m, C v) const {
    if (c == 0) s.reserved.set(0, C(0));
    C new_mean = m;
    C new_variance = v;
    if (rows != 0) {
      new_variance *= rows / (rows > 2 ? rows - 1 : C(1));
      if (factor != 1) {
        new_mean = (C(1) - factor) * s.mean.template get<C>(c) + factor * new_mean;
        new_variance = (C(1) - factor) * s.variance.template get<C>(c) + factor * new_variance;
      }
    }
    if (s.scale.data != nullptr) {
      const C gain = s.scale.template get<C>(c) / std::sqrt(v + epsilon);
      channels[c] = {m, gain, s.offset.template get<C>(c)};
    }
    s.new_mean.set(c, new_mean);
    s.new_variance.set(c, new_variance);
    s.saved_mean.set(c, m);
    s.saved_variance.set(c, v);
  }
};

/// The variance, sum of (x - mean)^2 / rows, and with it the results of each channel.
template <class T>
struct VarianceFold {
  using C = Compute<T>;
  using Value = C;
  static constexpr int k_width = k_pack_width<T>;
  const T* x;
  const C* means;
  Finish<C> results;
  C mean = 0;

  bool packed() const { return aligned(x, 16); }
  __device__ void prepare(std::int64_t c) { mean = means[c]; }
  __device__ Value first() const { return 0; }
  template <int width>
  __device__ Pack<T, width> load(std::int64_t offset) const {
    return load_pack<T, width>(x + offset);
  }
  template <int width>
  __device__ Value add(Value sum, const Pack<T, width>& pack, int i, std::int64_t) const {
    const C distance = kernels::load(pack.element[i]) - mean;
    return sum + distance * distance;
  }
  __device__ Value merge(Value a, Value b) const { return a + b; }
  __device__ void finish(std::int64_t c, Value sum) const { results(c, mean, sum / results.rows); }
};

/// The results of channels whose statistics are given.
template <class C>
__global__ void channels_kernel(Finish<C> results, std::int64_t count) {
  for (std::int64_t c = thread_of_grid(); c < count; c += threads_of_grid()) {
    results(c, results.s.mean.template get<C>(c), results.s.variance.template get<C>(c));
  }
}

/// Elements are processed in packs of `width`, which divides the number of channels. The threads of
/// a grid are a multiple of `channel_packs`, so that all packs of a thread have the same channels.
template <class T>
struct NormTensors {
  const T* x;
  const T* side;  ///< null: none
  T* y;
  std::int64_t packs;
  std::int64_t channel_packs;
  bool relu;
};

/// A grid for packs of all channels; its threads loop, so that few of them load the channels.
Grid grid_of_channels(std::int64_t packs, std::int64_t channel_packs) {
  constexpr std::int64_t k_blocks = 1024, k_threads = 256;
  const std::int64_t step = channel_packs / std::gcd(channel_packs, k_threads);
  const std::int64_t blocks = std::min((packs + k_threads - 1) / k_threads, k_blocks);
  return {.blocks = (blocks + step - 1) / step * step, .threads = k_threads};
}

/// The thread's first channel.
template <int width>
__device__ inline std::int64_t first_channel(std::int64_t channel_packs) {
  return divide(thread_of_grid(), channel_packs).remainder * width;
}

/// Packs that a thread loads before it stores the first of them.
constexpr int k_in_flight = 2;

template <int width, class T>
__global__ void HALFSTEP_BLOCK_OF(256, 2)
    normalise_kernel(NormTensors<T> t, const Channel<Compute<T>>* all) {
  using C = Compute<T>;
  Channel<C> channels[width];
  const std::int64_t first = first_channel<width>(t.channel_packs);
  for (int i = 0; i < width; ++i) channels[i] = all[first + i];
  const std::int64_t step = threads_of_grid();
  for (std::int64_t p = thread_of_grid(); p < t.packs; p += k_in_flight * step) {
    Pack<T, width> x[k_in_flight], side[k_in_flight] = {};
    for (int n = 0; n < k_in_flight; ++n) {
      const std::int64_t at = p + n * step;
      if (at >= t.packs) continue;
      x[n] = load_pack<T, width>(t.x + at * width);
      if (t.side != nullptr) side[n] = load_pack<T, width>(t.side + at * width);
    }
    for (int n = 0; n < k_in_flight; ++n) {
      const std::int64_t at = p + n * step;
      if (at >= t.packs) continue;
      T* y = x[n].element;
      for (int i = 0; i < width; ++i) {
        const Channel<C>& c = channels[i];
        y[i] = store<T>((load(y[i]) - c.mean) * c.gain + c.offset);
      }
      if (t.side != nullptr) {
        for (int i = 0; i < width; ++i) y[i] = store<T>(load(y[i]) + load(side[n].element[i]));
      }
      if (t.relu) {
        for (int i = 0; i < width; ++i) y[i] = load(y[i]) < 0 ? store<T>(C(0)) : y[i];
      }
      store_pack<T, width>(t.y + at * width, x[n]);
    }
  }
}

/// Calls f with the width of packs as a constant.
template <class T, class F>
void with_width(bool packed, std::int64_t channels, F&& f) {
  constexpr int k_width = k_pack_width<T>;
  if (packed && channels % k_width == 0) return f(std::integral_constant<int, k_width>{});
  f(std::integral_constant<int, 1>{});
}

template <class C>
struct GradientSums {
  C dy;       ///< sum of dy
  C dy_xhat;  ///< sum of dy * xhat
};

/// The values of a channel from which dx is computed.
template <class C>
struct GradientChannel {
  Channel<C> forward;  ///< as in the forward pass, bit for bit: the mask depends on it
  C inverse, gain;
  GradientSums<C> sums;
};

/// The inputs of a gradient, and how a channel's values follow from them.
template <class T>
struct GradientInputs {
  using C = Compute<T>;
  const T* dy;
  const T* x;
  const float* scale;
  const float* offset;
  Read mean, variance;
  C epsilon;
  bool relu;

  __device__ GradientChannel<C> channel(std::int64_t c) const {
    const C root = std::sqrt(variance.get<C>(c) + epsilon);
    const C factor = scale == nullptr ? C(0) : static_cast<C>(scale[c]);
    const C inverse = C(1) / root;
    return {{mean.get<C>(c), factor / root, relu ? static_cast<C>(offset[c]) : C(0)},
            inverse,
            factor * inverse,
            {0, 0}};
  }
  /// Whether the ReLU passes a gradient on.
  __device__ bool passes(T value, const Channel<C>& c) const {
    return load(store<T>((load(value) - c.mean) * c.gain + c.offset)) > 0;
  }
};

template <class T>
struct GradientFold {
  using C = Compute<T>;
  using Value = GradientSums<C>;
  static constexpr int k_width = k_pack_width<T>;
  template <int width>
  struct Row {
    Pack<T, width> dy, x;
  };
  GradientInputs<T> in;
  GradientChannel<C>* channels;
  Written dscale;
  Written doffset;
  GradientChannel<C> channel = {};

  bool packed() const { return aligned(in.dy, 16) && aligned(in.x, 16); }
  __device__ void prepare(std::int64_t c) { channel = in.channel(c); }
  __device__ Value first() const { return {0, 0}; }
  template <int width>
  __device__ Row<width> load(std::int64_t offset) const {
    return {load_pack<T, width>(in.dy + offset), load_pack<T, width>(in.x + offset)};
  }
  template <int width>
  __device__ Value add(Value sums, const Row<width>& row, int i, std::int64_t) const {
    const bool passes = !in.relu || in.passes(row.x.element[i], channel.forward);
    const C g = passes ? kernels::load(row.dy.element[i]) : C(0);
    const C xhat = (kernels::load(row.x.element[i]) - channel.forward.mean) * channel.inverse;
    return {sums.dy + g, sums.dy_xhat + g * xhat};
  }
  __device__ Value merge(Value a, Value b) const { return {a.dy + b.dy, a.dy_xhat + b.dy_xhat}; }
  __device__ void finish(std::int64_t c, Value sums) const {
    channels[c] = channel;
    channels[c].sums = sums;
    dscale.set(c, sums.dy_xhat);
    doffset.set(c, sums.dy);
  }
};

/// The values of channels whose sums are given.
template <class T>
__global__ void given_sums_kernel(GradientInputs<T> in,
                                  Read dscale,
                                  Read doffset,
                                  GradientChannel<Compute<T>>* channels,
                                  std::int64_t count) {
  using C = Compute<T>;
  for (std::int64_t c = thread_of_grid(); c < count; c += threads_of_grid()) {
    channels[c] = in.channel(c);
    channels[c].sums = {doffset.get<C>(c), dscale.get<C>(c)};
  }
}

/// `share` is 1 / rows of the statistics, 0 where they are not those of x. The grid is that of
/// grid_of_channels().
template <int width, class T>
__global__ void HALFSTEP_BLOCK_OF(256, 2) gradient_kernel(GradientInputs<T> in,
                                                          T* dx,
                                                          const GradientChannel<Compute<T>>* all,
                                                          std::int64_t packs,
                                                          std::int64_t channel_packs,
                                                          Compute<T> share) {
  using C = Compute<T>;
  GradientChannel<C> channels[width];
  const std::int64_t first = first_channel<width>(channel_packs);
  for (int i = 0; i < width; ++i) channels[i] = all[first + i];
  const std::int64_t step = threads_of_grid();
  for (std::int64_t p = thread_of_grid(); p < packs; p += k_in_flight * step) {
    Pack<T, width> x[k_in_flight], g[k_in_flight];
    for (int n = 0; n < k_in_flight; ++n) {
      const std::int64_t at = p + n * step;
      if (at >= packs) continue;
      x[n] = load_pack<T, width>(in.x + at * width);
      g[n] = load_pack<T, width>(in.dy + at * width);
    }
    for (int n = 0; n < k_in_flight; ++n) {
      const std::int64_t at = p + n * step;
      if (at >= packs) continue;
      T* dy = g[n].element;
      if (in.relu) {
        for (int i = 0; i < width; ++i) {
          if (!in.passes(x[n].element[i], channels[i].forward)) dy[i] = store<T>(C(0));
        }
      }
      for (int i = 0; i < width; ++i) {
        const GradientChannel<C>& c = channels[i];
        const C xhat = (load(x[n].element[i]) - c.forward.mean) * c.inverse;
        // In inference the sums are not multiplied by 0: a non-finite sum would give NaN.
        const C through = share == 0 ? 0 : (c.sums.dy + xhat * c.sums.dy_xhat) * share;
        dy[i] = store<T>(c.gain * (load(dy[i]) - through));
      }
      store_pack<T, width>(dx + at * width, g[n]);
    }
  }
}

/// Sizes of the parts of a workspace, rounded up to 16 bytes.
std::size_t rounded_up(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

template <class T>
struct NormMemory {
  using C = Compute<T>;
  std::size_t mean_bytes, channel_bytes, fold_bytes;

  NormMemory(const FoldPlan& plan, std::int64_t channels)
      : mean_bytes(rounded_up(static_cast<std::size_t>(channels) * sizeof(C))),
        channel_bytes(rounded_up(static_cast<std::size_t>(channels) * sizeof(Channel<C>))),
        fold_bytes(plan.workspace_bytes<MeanFold<T>>()) {}
  std::size_t bytes() const { return mean_bytes + channel_bytes + fold_bytes; }
};

template <class T>
void run_norm(Stream stream, const BatchNormParams& p) {
  using C = Compute<T>;
  const FoldPlan plan(p.rows, p.channels);
  const NormMemory<T> memory(plan, p.channels);
  auto* bytes = static_cast<std::uint8_t*>(p.workspace);
  auto* mean = reinterpret_cast<C*>(bytes);
  auto* channels = reinterpret_cast<Channel<C>*>(bytes + memory.mean_bytes);
  void* parts = bytes + memory.mean_bytes + memory.channel_bytes;
  const T* x = static_cast<const T*>(p.x);
  const C rows = static_cast<C>(p.rows);
  const Finish<C> results{Statistics(p),
                          channels,
                          p.training ? rows : C(0),
                          static_cast<C>(p.epsilon),
                          static_cast<C>(p.factor)};
  if (p.training) {
    run_fold(stream, MeanFold<T>{x, rows, mean}, plan, parts, p.tickets);
    run_fold(stream, VarianceFold<T>{x, mean, results}, plan, parts, p.tickets);
  } else {
    launch(channels_kernel<C>, grid_of(p.channels, 128), stream, results, p.channels);
  }
  if (p.y == nullptr) return;
  const T* side = static_cast<const T*>(p.side);
  T* y = static_cast<T*>(p.y);
  with_width<T>(aligned(x, 16) && aligned(y, 16) && aligned(side, 16),
                p.channels,
                [&]<int width>(std::integral_constant<int, width>) {
                  const std::int64_t packs = p.rows * p.channels / width;
                  const NormTensors<T> tensors{x, side, y, packs, p.channels / width, p.relu};
                  launch(normalise_kernel<width, T>,
                         grid_of_channels(packs, tensors.channel_packs),
                         stream,
                         tensors,
                         static_cast<const Channel<C>*>(channels));
                });
}

template <class T>
std::size_t gradient_channel_bytes(std::int64_t channels) {
  return rounded_up(static_cast<std::size_t>(channels) * sizeof(GradientChannel<Compute<T>>));
}

template <class T>
void run_gradient(Stream stream, const BatchNormGradParams& p) {
  using C = Compute<T>;
  const FoldPlan plan(p.rows, p.channels);
  auto* channels = static_cast<GradientChannel<C>*>(p.workspace);
  void* parts = static_cast<std::uint8_t*>(p.workspace) + gradient_channel_bytes<T>(p.channels);
  const GradientInputs<T> in{static_cast<const T*>(p.dy),
                             static_cast<const T*>(p.x),
                             p.scale,
                             p.offset,
                             {p.statistics, p.mean},
                             {p.statistics, p.variance},
                             static_cast<C>(p.epsilon),
                             p.relu};
  C share = p.training ? C(1) / static_cast<C>(p.rows) : C(0);
  if (p.given_dscale != nullptr) {
    share = p.sum_rows > 0 ? C(1) / static_cast<C>(p.sum_rows) : C(0);
    launch(given_sums_kernel<T>,
           grid_of(p.channels, 128),
           stream,
           in,
           Read{p.statistics, p.given_dscale},
           Read{p.statistics, p.given_doffset},
           channels,
           p.channels);
  } else {
    const GradientFold<T> fold{in, channels, {p.statistics, p.dscale}, {p.statistics, p.doffset}};
    run_fold(stream, fold, plan, parts, p.tickets);
  }
  if (p.dx == nullptr) return;
  T* dx = static_cast<T*>(p.dx);
  with_width<T>(aligned(in.dy, 16) && aligned(in.x, 16) && aligned(dx, 16),
                p.channels,
                [&]<int width>(std::integral_constant<int, width>) {
                  const std::int64_t packs = p.rows * p.channels / width;
                  launch(gradient_kernel<width, T>,
                         grid_of_channels(packs, p.channels / width),
                         stream,
                         in,
                         dx,
                         static_cast<const GradientChannel<C>*>(channels),
                         packs,
                         p.channels / width,
                         share);
                });
}

void check_statistics(DType dtype) {
  if (dtype != DType::float32 && dtype != DType::float64 && dtype != DType::bfloat16) refuse(dtype);
}

}  // namespace

std::size_t batch_norm_workspace(const BatchNormParams& p) {
  std::size_t bytes = 0;
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    bytes = NormMemory<T>(FoldPlan(p.rows, p.channels), p.channels).bytes();
  });
  return bytes;
}

void batch_norm(Stream stream, const BatchNormParams& p) {
  check_statistics(p.statistics);
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) { run_norm<T>(stream, p); });
}

std::size_t batch_norm_grad_workspace(const BatchNormGradParams& p) {
  std::size_t bytes = 0;
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    const FoldPlan plan(p.rows, p.channels);
    bytes =
        gradient_channel_bytes<T>(p.channels) + plan.template workspace_bytes<GradientFold<T>>();
  });
  return bytes;
}

void batch_norm_grad(Stream stream, const BatchNormGradParams& p) {
  check_statistics(p.statistics);
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) { run_gradient<T>(stream, p); });
}

}  // namespace halfstep::backend::cuda::kernels

#include "backend/cuda/kernels/norm.h"

#include <cmath>

#include "backend/cuda/kernels/device/fold.h"
#include "backend/cuda/kernels/device/norm_channels.h"

namespace halfstep::backend::cuda::kernels {
namespace {

/// mean[c] = sum of x / rows.
template <class T>
struct MeanFold : Rows<T> {
  using C = Compute<T>;
  using Value = C;
  C rows;
  C* mean;

  __device__ Value first() const { return 0; }
  template <int width>
  __device__ Value add(Value sum, const Pack<T, width>& pack, int i, std::int64_t) const {
    return sum + load(pack.element[i]);
  }
  __device__ Value merge(Value a, Value b) const { return a + b; }
  __device__ void finish(std::int64_t c, Value sum) const { mean[c] = sum / rows; }
};

/// The statistics of BatchNormParams.
struct NormStatistics {
  StatisticsInput scale, offset, mean, variance;
  StatisticsOutput new_mean, new_variance, saved_mean, saved_variance, reserved;

  explicit NormStatistics(const BatchNormParams& p)
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

/// Stores the outputs of a channel from its mean and variance; `rows` is 0 if they are inputs.
template <class C>
struct ChannelResults {
  NormStatistics s;
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

/// The variance, sum of (x - mean)^2 / rows; stores the outputs of each channel.
template <class T>
struct VarianceFold : Rows<T> {
  using C = Compute<T>;
  using Value = C;
  const C* means;
  ChannelResults<C> results;
  C mean = 0;

  __device__ void prepare(std::int64_t c) { mean = means[c]; }
  __device__ Value first() const { return 0; }
  template <int width>
  __device__ Value add(Value sum, const Pack<T, width>& pack, int i, std::int64_t) const {
    const C distance = load(pack.element[i]) - mean;
    return sum + distance * distance;
  }
  __device__ Value merge(Value a, Value b) const { return a + b; }
  __device__ void finish(std::int64_t c, Value sum) const { results(c, mean, sum / results.rows); }
};

/// The outputs of channels whose statistics are inputs.
template <class C>
__global__ void channels_kernel(ChannelResults<C> results, std::int64_t count) {
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
  const ChannelResults<C> results{NormStatistics(p),
                                  channels,
                                  p.training ? rows : C(0),
                                  static_cast<C>(p.epsilon),
                                  static_cast<C>(p.factor)};
  if (p.training) {
    run_fold(stream, MeanFold<T>{{x}, rows, mean}, plan, parts, p.tickets);
    run_fold(stream, VarianceFold<T>{{x}, mean, results}, plan, parts, p.tickets);
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

}  // namespace halfstep::backend::cuda::kernels

#include "backend/cuda/kernels/norm.h"

#include <cmath>

#include "backend/cuda/kernels/device/fold.h"
#include "backend/cuda/kernels/device/norm_channels.h"

namespace halfstep::backend::cuda::kernels {
namespace {

/// The number of some elements, the sum of their distances from `shift`, and that of the squares of
/// these distances. A thread's first element is its shift, so that both sums stay small beside the
/// elements' variance.
template <class C>
struct Moments {
  C count, shift, sum, squares;
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

/// The mean and variance of each channel in one pass, and with them its results. Parts are merged
/// as in Chan, Golub, LeVeque 1983, "Algorithms for computing the sample variance".
template <class T>
struct MomentsFold : Rows<T> {
  using C = Compute<T>;
  using Value = Moments<C>;
  Finish<C> results;

  __device__ Value first() const { return {0, 0, 0, 0}; }
  template <int width>
  __device__ Value add(Value m, const Pack<T, width>& pack, int i, std::int64_t) const {
    const C value = load(pack.element[i]);
    if (m.count == 0) m.shift = value;
    const C distance = value - m.shift;
    return {m.count + 1, m.shift, m.sum + distance, std::fma(distance, distance, m.squares)};
  }
  /// The sums about the mean, of which the first is 0.
  __device__ static Value about_mean(const Value& m) {
    if (m.count == 0) return m;
    const C offset = m.sum / m.count;
    return {m.count, m.shift + offset, 0, m.squares - m.sum * offset};
  }
  __device__ Value merge(const Value& left, const Value& right) const {
    const Value a = about_mean(left), b = about_mean(right);
    const C count = a.count + b.count;
    if (count == 0) return a;
    const C distance = b.shift - a.shift, share = b.count / count;
    return {count,
            a.shift + distance * share,
            0,
            a.squares + b.squares + distance * distance * (a.count * share)};
  }
  __device__ void finish(std::int64_t c, const Value& value) const {
    const Value m = about_mean(value);
    // A sum of squares less a rounded one may fall below 0.
    results(c, m.shift, m.squares < 0 ? C(0) : m.squares / results.rows);
  }
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
  std::size_t channel_bytes, fold_bytes;

  NormMemory(const FoldPlan& plan, std::int64_t channels)
      : channel_bytes(rounded_up(static_cast<std::size_t>(channels) * sizeof(Channel<C>))),
        fold_bytes(plan.workspace_bytes<MomentsFold<T>>()) {}
  std::size_t bytes() const { return channel_bytes + fold_bytes; }
};

template <class T>
void run_norm(Stream stream, const BatchNormParams& p) {
  using C = Compute<T>;
  const FoldPlan plan(p.rows, p.channels);
  const NormMemory<T> memory(plan, p.channels);
  auto* bytes = static_cast<std::uint8_t*>(p.workspace);
  auto* channels = reinterpret_cast<Channel<C>*>(bytes);
  const T* x = static_cast<const T*>(p.x);
  const C rows = static_cast<C>(p.rows);
  const Finish<C> results{Statistics(p),
                          channels,
                          p.training ? rows : C(0),
                          static_cast<C>(p.epsilon),
                          static_cast<C>(p.factor)};
  if (p.training) {
    run_fold(stream, MomentsFold<T>{{x}, results}, plan, bytes + memory.channel_bytes, p.tickets);
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

#include "backend/cuda/kernels/norm.h"

#include <cmath>

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
  const T* x;
  C rows;
  C* mean;

  __device__ Value first() const { return 0; }
  __device__ Value take(Value sum, std::int64_t offset, std::int64_t, std::int64_t) const {
    return sum + load(x[offset]);
  }
  __device__ Value merge(Value a, Value b) const { return a + b; }
  __device__ void finish(std::int64_t c, Value sum) const { mean[c] = sum / rows; }
};

/// variance[c] = sum of (x - mean)^2 / rows.
template <class T>
struct VarianceFold {
  using C = Compute<T>;
  using Value = C;
  const T* x;
  C rows;
  const C* mean;
  C* variance;

  __device__ Value first() const { return 0; }
  __device__ Value take(Value sum, std::int64_t offset, std::int64_t, std::int64_t c) const {
    const C distance = load(x[offset]) - mean[c];
    return sum + distance * distance;
  }
  __device__ Value merge(Value a, Value b) const { return a + b; }
  __device__ void finish(std::int64_t c, Value sum) const { variance[c] = sum / rows; }
};

/// What y is made of, per channel.
template <class C>
struct Channel {
  C mean, gain, offset;
};

/// The statistics of BatchNormParams, typed.
template <class U>
struct Statistics {
  const U* scale;
  const U* offset;
  const U* mean;
  const U* variance;
  U* new_mean;
  U* new_variance;
  U* saved_mean;
  U* saved_variance;
  U* reserved;
};

/// `mean` and `variance` are the batch's, in training.
template <class C, class U>
__global__ void channels_kernel(Statistics<U> s,
                                const C* mean,
                                const C* variance,
                                Channel<C>* channels,
                                std::int64_t count,
                                C rows,
                                C epsilon,
                                C factor,
                                bool training) {
  if (thread_of_grid() == 0 && s.reserved != nullptr) *s.reserved = store<U>(0.0F);
  for (std::int64_t c = thread_of_grid(); c < count; c += threads_of_grid()) {
    const C m = training ? mean[c] : static_cast<C>(load(s.mean[c]));
    const C v = training ? variance[c] : static_cast<C>(load(s.variance[c]));
    C new_mean = m;
    C new_variance = v;
    if (training) {
      new_variance *= rows / (rows > 2 ? rows - 1 : C(1));
      if (factor != 1) {
        new_mean = (C(1) - factor) * static_cast<C>(load(s.mean[c])) + factor * new_mean;
        new_variance =
            (C(1) - factor) * static_cast<C>(load(s.variance[c])) + factor * new_variance;
      }
    }
    const C gain = static_cast<C>(load(s.scale[c])) / std::sqrt(v + epsilon);
    channels[c] = {m, gain, static_cast<C>(load(s.offset[c]))};
    s.new_mean[c] = store<U>(new_mean);
    s.new_variance[c] = store<U>(new_variance);
    s.saved_mean[c] = store<U>(m);
    s.saved_variance[c] = store<U>(v);
  }
}

template <class T>
__global__ void normalise_kernel(const T* x,
                                 T* y,
                                 const Channel<Compute<T>>* channels,
                                 std::int64_t elements,
                                 std::int64_t count) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const Channel<Compute<T>> c = channels[i % count];
    y[i] = store<T>((load(x[i]) - c.mean) * c.gain + c.offset);
  }
}

template <class C>
struct GradientSums {
  C dy;       ///< sum of dy
  C dy_xhat;  ///< sum of dy * xhat
};

/// What dx is made of, per channel.
template <class C>
struct GradientChannel {
  C mean, inverse, gain;
  GradientSums<C> sums;
};

template <class T, class U>
struct GradientFold {
  using C = Compute<T>;
  using Value = GradientSums<C>;
  const T* dy;
  const T* x;
  GradientChannel<C>* channels;
  U* dscale;
  U* doffset;

  __device__ Value first() const { return {0, 0}; }
  __device__ Value take(Value sums, std::int64_t offset, std::int64_t, std::int64_t c) const {
    const C g = load(dy[offset]);
    const C xhat = (load(x[offset]) - channels[c].mean) * channels[c].inverse;
    return {sums.dy + g, sums.dy_xhat + g * xhat};
  }
  __device__ Value merge(Value a, Value b) const { return {a.dy + b.dy, a.dy_xhat + b.dy_xhat}; }
  __device__ void finish(std::int64_t c, Value sums) const {
    channels[c].sums = sums;
    dscale[c] = store<U>(sums.dy_xhat);
    doffset[c] = store<U>(sums.dy);
  }
};

template <class C, class U>
__global__ void gradient_channels_kernel(const float* scale,
                                         const U* mean,
                                         const U* variance,
                                         GradientChannel<C>* channels,
                                         std::int64_t count,
                                         C epsilon) {
  for (std::int64_t c = thread_of_grid(); c < count; c += threads_of_grid()) {
    const C inverse = C(1) / std::sqrt(static_cast<C>(load(variance[c])) + epsilon);
    channels[c].mean = static_cast<C>(load(mean[c]));
    channels[c].inverse = inverse;
    channels[c].gain = static_cast<C>(scale[c]) * inverse;
  }
}

/// `share` is 1 / rows in training, else 0.
template <class T>
__global__ void gradient_kernel(const T* dy,
                                const T* x,
                                T* dx,
                                const GradientChannel<Compute<T>>* channels,
                                std::int64_t elements,
                                std::int64_t count,
                                Compute<T> share) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const GradientChannel<Compute<T>> c = channels[i % count];
    const Compute<T> xhat = (load(x[i]) - c.mean) * c.inverse;
    // Not a product with 0: sums that are not finite belong to training alone.
    const Compute<T> through = share == 0 ? 0 : (c.sums.dy + xhat * c.sums.dy_xhat) * share;
    dx[i] = store<T>(c.gain * (load(dy[i]) - through));
  }
}

/// Parts of a workspace, each on 16 bytes.
std::size_t rounded_up(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

template <class T>
struct NormMemory {
  using C = Compute<T>;
  std::size_t mean_bytes, channel_bytes, fold_bytes;

  NormMemory(const FoldPlan& plan, std::int64_t channels)
      : mean_bytes(rounded_up(static_cast<std::size_t>(channels) * sizeof(C))),
        channel_bytes(rounded_up(static_cast<std::size_t>(channels) * sizeof(Channel<C>))),
        fold_bytes(plan.workspace_bytes<MeanFold<T>>()) {}
  std::size_t bytes() const { return 2 * mean_bytes + channel_bytes + fold_bytes; }
};

template <class T, class U>
void run_norm(Stream stream, const BatchNormParams& p) {
  using C = Compute<T>;
  const FoldPlan plan = plan_columns(p.rows, p.channels);
  const NormMemory<T> memory(plan, p.channels);
  auto* bytes = static_cast<std::uint8_t*>(p.workspace);
  auto* mean = reinterpret_cast<C*>(bytes);
  auto* variance = reinterpret_cast<C*>(bytes + memory.mean_bytes);
  auto* channels = reinterpret_cast<Channel<C>*>(bytes + 2 * memory.mean_bytes);
  void* parts = bytes + 2 * memory.mean_bytes + memory.channel_bytes;
  const T* x = static_cast<const T*>(p.x);
  const C rows = static_cast<C>(p.rows);
  if (p.training) {
    run_fold(stream, MeanFold<T>{x, rows, mean}, plan, parts);
    run_fold(stream, VarianceFold<T>{x, rows, mean, variance}, plan, parts);
  }
  const Statistics<U> statistics{static_cast<const U*>(p.scale),
                                 static_cast<const U*>(p.offset),
                                 static_cast<const U*>(p.mean),
                                 static_cast<const U*>(p.variance),
                                 static_cast<U*>(p.new_mean),
                                 static_cast<U*>(p.new_variance),
                                 static_cast<U*>(p.saved_mean),
                                 static_cast<U*>(p.saved_variance),
                                 static_cast<U*>(p.reserved)};
  launch(channels_kernel<C, U>,
         grid_of(p.channels, 128),
         stream,
         statistics,
         static_cast<const C*>(mean),
         static_cast<const C*>(variance),
         channels,
         p.channels,
         rows,
         static_cast<C>(p.epsilon),
         static_cast<C>(p.factor),
         p.training);
  const std::int64_t elements = p.rows * p.channels;
  launch(normalise_kernel<T>,
         grid_of(elements),
         stream,
         x,
         static_cast<T*>(p.y),
         static_cast<const Channel<C>*>(channels),
         elements,
         p.channels);
}

template <class T>
std::size_t gradient_channel_bytes(std::int64_t channels) {
  return rounded_up(static_cast<std::size_t>(channels) * sizeof(GradientChannel<Compute<T>>));
}

template <class T, class U>
void run_gradient(Stream stream, const BatchNormGradParams& p) {
  using C = Compute<T>;
  const FoldPlan plan = plan_columns(p.rows, p.channels);
  auto* channels = static_cast<GradientChannel<C>*>(p.workspace);
  void* parts = static_cast<std::uint8_t*>(p.workspace) + gradient_channel_bytes<T>(p.channels);
  const T* dy = static_cast<const T*>(p.dy);
  const T* x = static_cast<const T*>(p.x);
  launch(gradient_channels_kernel<C, U>,
         grid_of(p.channels, 128),
         stream,
         p.scale,
         static_cast<const U*>(p.mean),
         static_cast<const U*>(p.variance),
         channels,
         p.channels,
         static_cast<C>(p.epsilon));
  const GradientFold<T, U> fold{
      dy, x, channels, static_cast<U*>(p.dscale), static_cast<U*>(p.doffset)};
  run_fold(stream, fold, plan, parts);
  const std::int64_t elements = p.rows * p.channels;
  launch(gradient_kernel<T>,
         grid_of(elements),
         stream,
         dy,
         x,
         static_cast<T*>(p.dx),
         static_cast<const GradientChannel<C>*>(channels),
         elements,
         p.channels,
         p.training ? C(1) / static_cast<C>(p.rows) : C(0));
}

/// The dtypes of x and of the statistics.
template <class P, class F>
void dispatch_both(const P& p, const F& f) {
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    switch (p.statistics) {
      case DType::float32:
        return f(Type<T>{}, Type<float>{});
      case DType::float64:
        return f(Type<T>{}, Type<double>{});
      case DType::bfloat16:
        return f(Type<T>{}, Type<bfloat16>{});
      default:
        refuse(p.statistics);
    }
  });
}

}  // namespace

std::size_t batch_norm_workspace(const BatchNormParams& p) {
  std::size_t bytes = 0;
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    bytes = NormMemory<T>(plan_columns(p.rows, p.channels), p.channels).bytes();
  });
  return bytes;
}

void batch_norm(Stream stream, const BatchNormParams& p) {
  dispatch_both(p, [&]<class T, class U>(Type<T>, Type<U>) { run_norm<T, U>(stream, p); });
}

std::size_t batch_norm_grad_workspace(const BatchNormGradParams& p) {
  std::size_t bytes = 0;
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    const FoldPlan plan = plan_columns(p.rows, p.channels);
    bytes = gradient_channel_bytes<T>(p.channels) +
            plan.template workspace_bytes<GradientFold<T, float>>();
  });
  return bytes;
}

void batch_norm_grad(Stream stream, const BatchNormGradParams& p) {
  dispatch_both(p, [&]<class T, class U>(Type<T>, Type<U>) { run_gradient<T, U>(stream, p); });
}

}  // namespace halfstep::backend::cuda::kernels

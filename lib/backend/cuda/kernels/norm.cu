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
  template <class C>
  __device__ void set(std::int64_t i, C x) const {
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

/// `mean` and `variance` are those of the batch, in training.
template <class C>
__global__ void channels_kernel(Statistics s,
                                const C* mean,
                                const C* variance,
                                Channel<C>* channels,
                                std::int64_t count,
                                C rows,
                                C epsilon,
                                C factor,
                                bool training) {
  if (thread_of_grid() == 0 && s.reserved.data != nullptr) s.reserved.set(0, C(0));
  for (std::int64_t c = thread_of_grid(); c < count; c += threads_of_grid()) {
    const C m = training ? mean[c] : s.mean.get<C>(c);
    const C v = training ? variance[c] : s.variance.get<C>(c);
    C new_mean = m;
    C new_variance = v;
    if (training) {
      new_variance *= rows / (rows > 2 ? rows - 1 : C(1));
      if (factor != 1) {
        new_mean = (C(1) - factor) * s.mean.get<C>(c) + factor * new_mean;
        new_variance = (C(1) - factor) * s.variance.get<C>(c) + factor * new_variance;
      }
    }
    const C gain = s.scale.get<C>(c) / std::sqrt(v + epsilon);
    channels[c] = {m, gain, s.offset.get<C>(c)};
    s.new_mean.set(c, new_mean);
    s.new_variance.set(c, new_variance);
    s.saved_mean.set(c, m);
    s.saved_variance.set(c, v);
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

/// The values of a channel from which dx is computed.
template <class C>
struct GradientChannel {
  C mean, inverse, gain;
  GradientSums<C> sums;
};

template <class T>
struct GradientFold {
  using C = Compute<T>;
  using Value = GradientSums<C>;
  const T* dy;
  const T* x;
  GradientChannel<C>* channels;
  Written dscale;
  Written doffset;

  __device__ Value first() const { return {0, 0}; }
  __device__ Value take(Value sums, std::int64_t offset, std::int64_t, std::int64_t c) const {
    const C g = load(dy[offset]);
    const C xhat = (load(x[offset]) - channels[c].mean) * channels[c].inverse;
    return {sums.dy + g, sums.dy_xhat + g * xhat};
  }
  __device__ Value merge(Value a, Value b) const { return {a.dy + b.dy, a.dy_xhat + b.dy_xhat}; }
  __device__ void finish(std::int64_t c, Value sums) const {
    channels[c].sums = sums;
    dscale.set(c, sums.dy_xhat);
    doffset.set(c, sums.dy);
  }
};

template <class C>
__global__ void gradient_channels_kernel(const float* scale,
                                         Read mean,
                                         Read variance,
                                         GradientChannel<C>* channels,
                                         std::int64_t count,
                                         C epsilon) {
  for (std::int64_t c = thread_of_grid(); c < count; c += threads_of_grid()) {
    const C inverse = C(1) / std::sqrt(variance.get<C>(c) + epsilon);
    channels[c].mean = mean.get<C>(c);
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
    // In inference the sums are not multiplied by 0: a non-finite sum would give NaN.
    const Compute<T> through = share == 0 ? 0 : (c.sums.dy + xhat * c.sums.dy_xhat) * share;
    dx[i] = store<T>(c.gain * (load(dy[i]) - through));
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
  std::size_t bytes() const { return 2 * mean_bytes + channel_bytes + fold_bytes; }
};

template <class T>
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
  launch(channels_kernel<C>,
         grid_of(p.channels, 128),
         stream,
         Statistics(p),
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

template <class T>
void run_gradient(Stream stream, const BatchNormGradParams& p) {
  using C = Compute<T>;
  const FoldPlan plan = plan_columns(p.rows, p.channels);
  auto* channels = static_cast<GradientChannel<C>*>(p.workspace);
  void* parts = static_cast<std::uint8_t*>(p.workspace) + gradient_channel_bytes<T>(p.channels);
  const T* dy = static_cast<const T*>(p.dy);
  const T* x = static_cast<const T*>(p.x);
  launch(gradient_channels_kernel<C>,
         grid_of(p.channels, 128),
         stream,
         p.scale,
         Read{p.statistics, p.mean},
         Read{p.statistics, p.variance},
         channels,
         p.channels,
         static_cast<C>(p.epsilon));
  const GradientFold<T> fold{dy, x, channels, {p.statistics, p.dscale}, {p.statistics, p.doffset}};
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

void check_statistics(DType dtype) {
  if (dtype != DType::float32 && dtype != DType::float64 && dtype != DType::bfloat16) refuse(dtype);
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
  check_statistics(p.statistics);
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) { run_norm<T>(stream, p); });
}

std::size_t batch_norm_grad_workspace(const BatchNormGradParams& p) {
  std::size_t bytes = 0;
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    const FoldPlan plan = plan_columns(p.rows, p.channels);
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

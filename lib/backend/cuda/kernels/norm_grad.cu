#include <cmath>

#include "backend/cuda/kernels/device/fold.h"
#include "backend/cuda/kernels/device/norm_channels.h"
#include "backend/cuda/kernels/norm.h"

namespace halfstep::backend::cuda::kernels {
namespace {

template <class C>
struct GradientSums {
  C dy;       ///< sum of dy
  C dy_xhat;  ///< sum of dy * xhat
};

/// The coefficients of a channel in dx.
template <class C>
struct GradientChannel {
  Channel<C> forward;  ///< as in the forward pass, bit for bit: the mask depends on it
  C inverse, gain;
  GradientSums<C> sums;
};

/// The inputs of the gradient, and the coefficients computed from them.
template <class T>
struct GradientInputs {
  using C = Compute<T>;
  const T* dy;
  const T* x;
  const float* scale;
  const float* offset;
  StatisticsInput mean, variance;
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
struct GradientFold : GradientRows<T, GradientInputs<T>> {
  using C = Compute<T>;
  using Value = GradientSums<C>;
  GradientChannel<C>* channels;
  StatisticsOutput dscale;
  StatisticsOutput doffset;
  GradientChannel<C> channel = {};

  __device__ void prepare(std::int64_t c) { channel = this->in.channel(c); }
  __device__ Value first() const { return {0, 0}; }
  template <class Row>
  __device__ Value add(Value sums, const Row& row, int i, std::int64_t) const {
    const T x = row.x.element[i];
    const bool passes = !this->in.relu || this->in.passes(x, channel.forward);
    const C g = passes ? load(row.dy.element[i]) : C(0);
    const C xhat = (load(x) - channel.forward.mean) * channel.inverse;
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

/// The coefficients of channels whose sums are inputs.
template <class T>
__global__ void input_sums_kernel(GradientInputs<T> in,
                                  StatisticsInput dscale,
                                  StatisticsInput doffset,
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
    launch(input_sums_kernel<T>,
           grid_of(p.channels, 128),
           stream,
           in,
           StatisticsInput{p.statistics, p.given_dscale},
           StatisticsInput{p.statistics, p.given_doffset},
           channels,
           p.channels);
  } else {
    const GradientFold<T> fold{{in}, channels, {p.statistics, p.dscale}, {p.statistics, p.doffset}};
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

}  // namespace

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

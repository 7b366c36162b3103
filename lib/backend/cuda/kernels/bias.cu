#include "backend/cuda/kernels/bias.h"

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/fold.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

template <bool relu>
struct AddBias {
  template <class C>
  __device__ C operator()(C x, C bias) const {
    const C y = static_cast<C>(x + bias);
    if constexpr (relu) return y < C(0) ? C(0) : y;
    return y;
  }
};

template <class T>
struct ChannelSum : Rows<T> {
  using Value = Sum<T>;
  T* dbias;

  __device__ Value first() const { return 0; }
  template <int width>
  __device__ Value add(Value sum, const Pack<T, width>& pack, int i, std::int64_t) const {
    return sum + load_sum(pack.element[i]);
  }
  __device__ Value take(Value sum, std::int64_t offset, std::int64_t, std::int64_t) const {
    return sum + load_sum(this->x[offset]);
  }
  __device__ Value merge(Value a, Value b) const { return a + b; }
  __device__ void finish(std::int64_t channel, Value sum) const { dbias[channel] = store<T>(sum); }
};

/// A gradient, and the outputs of the ReLU that it passes through.
template <class T>
struct MaskedGradient {
  const T* dy;
  const T* x;
};

/// The sums of a gradient that passes through a ReLU, and the gradient after it.
template <class T>
struct MaskedChannelSum : GradientRows<T, MaskedGradient<T>> {
  using Value = Sum<T>;
  T* masked;
  T* dbias;

  bool packed() const {
    return GradientRows<T, MaskedGradient<T>>::packed() && aligned(masked, 16);
  }
  __device__ Value first() const { return 0; }
  template <class Row>
  __device__ void visit(Row& row, std::int64_t offset) const {
    auto passed = row.dy;
    for (std::size_t i = 0; i < sizeof passed / sizeof(T); ++i) {
      passed.element[i] = load(row.x.element[i]) > 0 ? row.dy.element[i] : T{};
    }
    store_pack(masked + offset, passed);
    row.dy = passed;
  }
  template <class Row>
  __device__ Value add(Value sum, const Row& row, int i, std::int64_t) const {
    return sum + load_sum(row.dy.element[i]);
  }
  __device__ Value merge(Value a, Value b) const { return a + b; }
  __device__ void finish(std::int64_t channel, Value sum) const { dbias[channel] = store<T>(sum); }
};

FoldPlan plan_of(const BiasGradParams& p) {
  if (p.inner == 1) return {p.outer, p.channels};
  return {Walk<1>(Shape{p.channels}, {Strides{p.inner}}),
          Walk<1>(Shape{p.outer, p.inner}, {Strides{p.channels * p.inner, 1}})};
}

}  // namespace

void bias_add(Stream stream, const BiasAddParams& p) {
  const Walk<2> walk(Shape{p.outer, p.channels, p.inner},
                     {Strides{p.channels * p.inner, p.inner, 1}, Strides{0, 1, 0}});
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    const Sources<T, 2> from{{static_cast<const T*>(p.x), static_cast<const T*>(p.bias)}};
    T* y = static_cast<T*>(p.y);
    if (p.relu) {
      if constexpr (!std::is_integral_v<T>) {
        return map_any<T, T, 2>(stream, AddBias<true>{}, from, y, walk);
      }
      refuse(p.dtype);
    }
    map_any<T, T, 2>(stream, AddBias<false>{}, from, y, walk);
  });
}

std::size_t bias_grad_workspace(const BiasGradParams& p) {
  std::size_t bytes = 0;
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    bytes = plan_of(p).template workspace_bytes<ChannelSum<T>>();
  });
  return bytes;
}

void bias_grad(Stream stream, const BiasGradParams& p) {
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    const T* dy = static_cast<const T*>(p.dy);
    T* dbias = static_cast<T*>(p.dbias);
    const auto run = [&](const auto& fold) {
      run_fold(stream, fold, plan_of(p), p.workspace, p.tickets);
    };
    if (p.features == nullptr) return run(ChannelSum<T>{{dy}, dbias});
    const T* features = static_cast<const T*>(p.features);
    run(MaskedChannelSum<T>{{{dy, features}}, static_cast<T*>(p.masked), dbias});
  });
}

}  // namespace halfstep::backend::cuda::kernels

#include "backend/cuda/kernels/cast.h"

#include <cmath>
#include <limits>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

/// Conversion to an integer: truncated, saturated, 0 for NaN.
template <class To>
__device__ inline To saturated(double x) {
  constexpr To k_highest = std::numeric_limits<To>::max();
  constexpr To k_lowest = std::numeric_limits<To>::min();
  if (std::isnan(x)) return 0;
  if (x >= static_cast<double>(k_highest)) return k_highest;
  if (x <= static_cast<double>(k_lowest)) return k_lowest;
  return static_cast<To>(x);
}

template <class To>
struct CastTo {
  template <class C>
  __device__ auto operator()(C x) const {
    if constexpr (std::is_same_v<To, bool>) {
      return x != C{};
    } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<C>) {
      return saturated<To>(static_cast<double>(x));
    } else {
      return static_cast<Compute<To>>(x);
    }
  }
};

template <class To>
__global__ void cast_rows_kernel(CastRowsParams p, To* y) {
  const std::int64_t elements = p.rows * p.padded;
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const auto [row, column] = divide(i, p.padded);
    y[i] = store<To>(column < p.columns ? p.x[row * p.columns + column] : 0.0F);
  }
}

}  // namespace

void cast(Stream stream, const CastParams& p) {
  dispatch_any(p.from, [&]<class From>(Type<From>) {
    dispatch_any(p.to, [&]<class To>(Type<To>) {
      const Sources<From, 1> from{{static_cast<const From*>(p.x)}};
      map<From, To, 1>(stream, CastTo<To>{}, from, static_cast<To*>(p.y), p.elements);
    });
  });
}

void cast_rows(Stream stream, const CastRowsParams& p) {
  const auto run = [&]<class To>(Type<To>) {
    launch(cast_rows_kernel<To>, grid_of(p.rows * p.padded), stream, p, static_cast<To*>(p.y));
  };
  if (p.to == DType::float16) return run(Type<float16>{});
  run(Type<bfloat16>{});
}

}  // namespace halfstep::backend::cuda::kernels

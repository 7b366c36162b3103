#include "backend/cuda/vendor/emulated/values.h"

#include <fmt/format.h>

#include <array>

#include "backend/cuda/vendor/vendor.h"
#include "core/dispatch.h"

namespace halfstep::backend::cuda::emulated {

std::vector<float> load(DType dtype, const void* data, std::int64_t count) {
  std::vector<float> out(static_cast<std::size_t>(count));
  dispatch_floating(dtype, [&]<class T>(Type<T>) {
    const T* in = static_cast<const T*>(data);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(in[i]);
  });
  return out;
}

float load_one(DType dtype, const void* data, std::int64_t i) {
  return dispatch_floating(
      dtype, [&]<class T>(Type<T>) { return static_cast<float>(static_cast<const T*>(data)[i]); });
}

void store_one(DType dtype, void* data, std::int64_t i, float value) {
  dispatch_floating(dtype,
                    [&]<class T>(Type<T>) { static_cast<T*>(data)[i] = static_cast<T>(value); });
}

float dot(const float* a, const float* b, std::int64_t count) {
  constexpr std::int64_t k_lanes = 8;
  std::array<float, k_lanes> sums{};
  std::int64_t i = 0;
  for (; i + k_lanes <= count; i += k_lanes) {
    for (std::int64_t l = 0; l < k_lanes; ++l) {
      sums[static_cast<std::size_t>(l)] += a[i + l] * b[i + l];
    }
  }
  float sum = 0;
  for (float lane : sums) sum += lane;
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

void expect_aligned(const void* address, std::size_t alignment, const char* what) {
  if (address == nullptr) throw VendorError(Failure::failed, fmt::format("no {} given", what));
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
    throw VendorError(Failure::failed,
                      fmt::format("{} is not on a multiple of {} bytes", what, alignment));
  }
}

}  // namespace halfstep::backend::cuda::emulated

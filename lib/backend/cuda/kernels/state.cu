#include "backend/cuda/kernels/state.h"

#include <cstdint>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

__global__ void assign_kernel(std::uint8_t* to,
                              const std::uint8_t* from,
                              std::int64_t bytes,
                              std::int64_t packs,
                              const bool* ok) {
  if (ok != nullptr && !*ok) return;
  constexpr int k_width = k_pack_width<std::uint8_t>;
  for (std::int64_t p = thread_of_grid(); p < packs; p += threads_of_grid()) {
    store_pack<std::uint8_t, k_width>(to + p * k_width,
                                      load_pack<std::uint8_t, k_width>(from + p * k_width));
  }
  for (std::int64_t i = packs * k_width + thread_of_grid(); i < bytes; i += threads_of_grid()) {
    to[i] = from[i];
  }
}

template <class T>
__global__ void assign_add_kernel(T* to, const T* value, std::int64_t elements, const bool* ok) {
  if (ok != nullptr && !*ok) return;
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    to[i] = store<T>(load(to[i]) + load(value[i]));
  }
}

}  // namespace

void assign(Stream stream, const AssignParams& p) {
  const auto bytes = static_cast<std::int64_t>(p.bytes);
  const bool packed = aligned(p.variable, 16) && aligned(p.value, 16);
  const std::int64_t packs = packed ? bytes / 16 : 0;
  launch(assign_kernel,
         grid_of(bytes - packs * 15),
         stream,
         static_cast<std::uint8_t*>(p.variable),
         static_cast<const std::uint8_t*>(p.value),
         bytes,
         packs,
         p.ok);
}

void assign_add(Stream stream, const AssignAddParams& p) {
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    launch(assign_add_kernel<T>,
           grid_of(p.elements),
           stream,
           static_cast<T*>(p.variable),
           static_cast<const T*>(p.value),
           p.elements,
           p.ok);
  });
}

}  // namespace halfstep::backend::cuda::kernels

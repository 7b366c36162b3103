#include "backend/cuda/kernels/state.h"

#include <algorithm>
#include <cstdint>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

__device__ inline void copy_bytes(std::uint8_t* to,
                                  const std::uint8_t* from,
                                  std::int64_t bytes,
                                  std::int64_t packs) {
  constexpr int k_width = k_pack_width<std::uint8_t>;
  for (std::int64_t p = thread_of_grid(); p < packs; p += threads_of_grid()) {
    store_pack<std::uint8_t, k_width>(to + p * k_width,
                                      load_pack<std::uint8_t, k_width>(from + p * k_width));
  }
  for (std::int64_t i = packs * k_width + thread_of_grid(); i < bytes; i += threads_of_grid()) {
    to[i] = from[i];
  }
}

__global__ void assign_kernel(std::uint8_t* to,
                              const std::uint8_t* from,
                              std::int64_t bytes,
                              std::int64_t packs,
                              const bool* ok) {
  if (ok == nullptr || *ok) copy_bytes(to, from, bytes, packs);
}

/// By the threads of one block.
__device__ inline void log_values(const LogScalarsParams& p) {
  const std::size_t cells = p.count * static_cast<std::size_t>(*p.ordinal % p.slots);
  for (std::size_t i = static_cast<std::size_t>(thread()); i < p.count;
       i += static_cast<std::size_t>(threads())) {
    std::uint8_t* cell = static_cast<std::uint8_t*>(p.log) + (cells + i) * LogScalarsParams::k_cell;
    const auto* value = static_cast<const std::uint8_t*>(p.values[i]);
    for (std::uint8_t byte = 0; byte < p.bytes[i]; ++byte) cell[byte] = value[byte];
  }
}

__global__ void log_kernel(LogScalarsParams p) { log_values(p); }

/// The last block sets the flag, after all blocks have read it.
__global__ void keep_kernel(std::uint8_t* to,
                            const std::uint8_t* from,
                            std::int64_t bytes,
                            std::int64_t packs,
                            bool* taken,
                            const bool* ok,
                            LogScalarsParams log,
                            unsigned* ticket) {
  if (block() == 0) log_values(log);
  if (*ok) return;
  if (!*taken) copy_bytes(to, from, bytes, packs);
  if (is_last_block(ticket, blocks()) && thread() == 0) *taken = true;
}

/// Blocks of one column of the grid have one tensor.
__global__ void average_kernel(MovingAveragesParams p) {
  if (p.ok != nullptr && !*p.ok) return;
  const auto count = static_cast<std::int64_t>(p.count);
  const MovingAveragesParams::Tensor& t = p.tensors[static_cast<std::size_t>(block() % count)];
  const std::int64_t step = blocks() / count * threads();
  for (std::int64_t i = block() / count * threads() + thread(); i < t.elements; i += step) {
    t.average[i] = t.average[i] * t.momentum + t.value[i] * t.share;
  }
}

template <class T>
__global__ void assign_add_kernel(T* to, const T* value, std::int64_t elements, const bool* ok) {
  if (ok != nullptr && !*ok) return;
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    to[i] = store<T>(load(to[i]) + load(value[i]));
  }
}

/// The number of packs of 16 bytes.
std::int64_t packs_of(const void* to, const void* from, std::int64_t bytes) {
  return aligned(to, 16) && aligned(from, 16) ? bytes / 16 : 0;
}

}  // namespace

void assign(Stream stream, const AssignParams& p) {
  const auto bytes = static_cast<std::int64_t>(p.bytes);
  const std::int64_t packs = packs_of(p.variable, p.value, bytes);
  launch(assign_kernel,
         grid_of(bytes - packs * 15),
         stream,
         static_cast<std::uint8_t*>(p.variable),
         static_cast<const std::uint8_t*>(p.value),
         bytes,
         packs,
         p.ok);
}

void keep_state(Stream stream, const KeepStateParams& p) {
  const auto bytes = static_cast<std::int64_t>(p.bytes);
  const std::int64_t packs = packs_of(p.kept, p.state, bytes);
  Grid grid = grid_of(bytes - packs * 15);
  grid.cooperates = true;
  launch(keep_kernel,
         grid,
         stream,
         static_cast<std::uint8_t*>(p.kept),
         static_cast<const std::uint8_t*>(p.state),
         bytes,
         packs,
         p.taken,
         p.ok,
         p.log,
         p.tickets.data);
}

void moving_averages(Stream stream, const MovingAveragesParams& p) {
  std::int64_t longest = 1;
  for (std::size_t i = 0; i < p.count; ++i) longest = std::max(longest, p.tensors[i].elements);
  Grid grid = grid_of(longest);
  grid.blocks *= static_cast<std::int64_t>(p.count);
  launch(average_kernel, grid, stream, p);
}

void log_scalars(Stream stream, const LogScalarsParams& p) {
  launch(log_kernel, Grid{.blocks = 1, .threads = 32}, stream, p);
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

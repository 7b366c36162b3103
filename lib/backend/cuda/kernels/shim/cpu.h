#pragma once
// The execution model of a GPU on one processor thread; see compat.h. Kernels whose threads do not
// cooperate run as loops, the others on fibers that switch at barriers.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backend/cuda/kernels/shim/grid.h"
#include "backend/cuda/kernels/stream.h"
#include "backend/cuda/vendor/emulated/queue.h"
#include "core/half.h"
#include "core/parallel.h"

namespace halfstep::backend::cuda::kernels {

namespace shim {

constexpr unsigned k_warp = 32;

/// The coordinates of the running thread.
struct ThreadCoordinate {
  unsigned thread = 0;
  std::int64_t block = 0;
  std::int64_t row = 0;
  Grid grid;
};
extern ThreadCoordinate current_thread;

/// The order in which blocks, and threads between two barriers, run.
enum class Order { forward, backward };
void set_order(Order order);

/// Runs `thread` once for every thread of the grid. Errors: LaunchError when threads wait for
/// others that never arrive, wait in a kernel that does not cooperate, or request more shared
/// memory than a block has.
void run(const Grid& grid, FunctionRef<void()> thread);

void wait_for_block();
/// Every lane contributes 8 bytes and receives those of `lane`.
std::uint64_t exchange(std::uint64_t bits, unsigned lane);

/// The next shared array of the block; the same memory for each thread, filled with 0xFF when a
/// block begins.
void* shared_bytes(std::size_t bytes);

template <class T>
T* shared(std::size_t count) {
  return static_cast<T*>(shared_bytes(count * sizeof(T)));
}

}  // namespace shim

inline unsigned thread() { return shim::current_thread.thread; }
inline unsigned threads() { return shim::current_thread.grid.threads; }
inline std::int64_t block() { return shim::current_thread.block; }
inline std::int64_t blocks() { return shim::current_thread.grid.blocks; }
inline std::int64_t row() { return shim::current_thread.row; }

inline void sync_block() { shim::wait_for_block(); }

template <class T>
T shuffle_xor(T x, unsigned lanes) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  bits = shim::exchange(bits, (shim::current_thread.thread % shim::k_warp) ^ lanes);
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

inline bool is_last_block(unsigned* ticket, std::int64_t count) {
  sync_block();
  bool* const last = shim::shared<bool>(1);
  if (thread() == 0) {
    *last = ++*ticket == static_cast<unsigned>(count);
    if (*last) *ticket = 0;
  }
  sync_block();
  return *last;
}

constexpr float to_float(float16 x) { return static_cast<float>(x); }
constexpr float to_float(bfloat16 x) { return static_cast<float>(x); }
constexpr float16 to_float16(float x) { return float16(x); }
constexpr bfloat16 to_bfloat16(float x) { return bfloat16(x); }

template <class T>
void store_at_once(T* p, const T& value) {
  *p = value;
}

/// Queues the kernel on the emulated stream. Errors: those of shim::run(), when the kernel runs.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...),
            const Grid& grid,
            Stream stream,
            Arguments... arguments) {
  if (grid.blocks == 0 || grid.rows == 0) return;
  emulated::enqueue(stream, [=] { shim::run(grid, [&] { kernel(arguments...); }); });
}

}  // namespace halfstep::backend::cuda::kernels

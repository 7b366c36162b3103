#include "backend/cuda/kernels/shim/cpu.h"

#include <array>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backend/cuda/kernels/shim/fiber.h"

// Shared memory that a block did not request is poisoned, if AddressSanitizer is linked.
extern "C" {
[[gnu::weak]] void __asan_poison_memory_region(const volatile void* begin, std::size_t bytes);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* begin, std::size_t bytes);
}

namespace halfstep::backend::cuda::kernels::shim {

ThreadCoordinate current_thread;

namespace {

enum class State : std::uint8_t { ready, at_warp, at_block, done };

/// Shared memory of a block without opting in to more.
constexpr std::size_t k_shared_bytes = 48 * 1024;

/// One thread of the running block.
struct Thread {
  explicit Thread(void (*entry)()) : fiber(entry) {}

  Fiber fiber;
  State state = State::done;
  std::array<std::uint64_t, 2> given{};  ///< to the latest exchanges of even and odd number
  unsigned exchanges = 0;
  std::size_t shared_used = 0;
};

/// One grid runs at a time: a launch holds the mutex.
struct Machine {
  std::mutex mutex;
  Order order = Order::forward;
  Fiber caller;
  std::deque<Thread> threads;
  const FunctionRef<void()>* body = nullptr;
  std::optional<std::string> error;  ///< of a thread, in either mode
  alignas(64) std::array<std::byte, k_shared_bytes> shared{};
  std::size_t shared_high = 0;  ///< bytes that the last block used
};
Machine g_machine;

Thread& current() { return g_machine.threads[current_thread.thread]; }

void thread_entry() {
  current().fiber.entered();
  for (;;) {
    (*g_machine.body)();
    current().state = State::done;
    current().fiber.switch_to(g_machine.caller);
  }
}

std::string position() {
  return "block " + std::to_string(current_thread.block) + ", row " +
         std::to_string(current_thread.row);
}

/// Calls body(i) for i in [0, n) in the machine's order.
template <class F>
void in_order(std::int64_t n, const F& body) {
  for (std::int64_t i = 0; i < n; ++i) body(g_machine.order == Order::forward ? i : n - 1 - i);
}

void unpoison(const std::byte* begin, std::size_t bytes) {
  if (__asan_unpoison_memory_region != nullptr) __asan_unpoison_memory_region(begin, bytes);
}

void clear_shared() {
  unpoison(g_machine.shared.data(), g_machine.shared_high);
  std::memset(g_machine.shared.data(), 0xFF, g_machine.shared_high);
  if (__asan_poison_memory_region != nullptr) {
    __asan_poison_memory_region(g_machine.shared.data(), k_shared_bytes);
  }
}

/// Runs the ready threads of a warp until each waits or is done. True when all of them waited for
/// each other, and are ready again.
bool advance_warp(unsigned first) {
  in_order(k_warp, [&](std::int64_t lane) {
    current_thread.thread = first + static_cast<unsigned>(lane);
    if (current().state == State::ready) g_machine.caller.switch_to(current().fiber);
  });
  for (unsigned i = first; i < first + k_warp; ++i) {
    if (g_machine.threads[i].state != State::at_warp) return false;
  }
  for (unsigned i = first; i < first + k_warp; ++i) g_machine.threads[i].state = State::ready;
  return true;
}

/// The threads of a block that have this state.
unsigned count(const Grid& grid, State state) {
  unsigned n = 0;
  for (unsigned i = 0; i < grid.threads; ++i) n += g_machine.threads[i].state == state ? 1 : 0;
  return n;
}

/// Suspended threads are discarded.
[[noreturn]] void fail(const std::string& text) {
  g_machine.threads.clear();
  throw LaunchError(text);
}

void run_block(const Grid& grid) {
  while (g_machine.threads.size() < grid.threads) g_machine.threads.emplace_back(thread_entry);
  for (unsigned i = 0; i < grid.threads; ++i) {
    Thread& t = g_machine.threads[i];
    t.state = State::ready;
    t.exchanges = 0;
    t.shared_used = 0;
  }
  for (;;) {
    in_order(grid.threads / k_warp, [](std::int64_t warp) {
      while (advance_warp(static_cast<unsigned>(warp) * k_warp)) {
      }
    });
    if (g_machine.error) fail(*std::exchange(g_machine.error, {}));
    const unsigned done = count(grid, State::done);
    if (done == grid.threads) return;
    const unsigned at_block = count(grid, State::at_block);
    if (at_block != grid.threads) {
      fail("threads wait for others that do not come in " + position() + ": " +
           std::to_string(at_block) + " at the block's barrier, " +
           std::to_string(count(grid, State::at_warp)) + " at their warp's, " +
           std::to_string(done) + " have ended");
    }
    for (unsigned i = 0; i < grid.threads; ++i) g_machine.threads[i].state = State::ready;
  }
}

void run_loop(const Grid& grid, FunctionRef<void()> thread) {
  in_order(grid.threads, [&](std::int64_t i) {
    current_thread.thread = static_cast<unsigned>(i);
    thread();
  });
  if (g_machine.error) throw LaunchError(*std::exchange(g_machine.error, {}));
}

void wait(State state) {
  if (!current_thread.grid.cooperates) {
    g_machine.error = "a thread waits in a kernel that does not cooperate, in " + position();
    return;
  }
  current().state = state;
  current().fiber.switch_to(g_machine.caller);
}

}  // namespace

void set_order(Order order) { g_machine.order = order; }

void run(const Grid& grid, FunctionRef<void()> thread) {
  const std::lock_guard lock(g_machine.mutex);
  if (grid.threads == 0 || grid.threads % k_warp != 0 || grid.threads > 1024 ||
      grid.rows > 65'535 || grid.blocks > 0x7FFFFFFF) {
    throw LaunchError("no device runs " + std::to_string(grid.blocks) + " by " +
                      std::to_string(grid.rows) + " blocks of " + std::to_string(grid.threads) +
                      " threads");
  }
  current_thread.grid = grid;
  g_machine.body = &thread;
  in_order(grid.rows, [&](std::int64_t row) {
    current_thread.row = row;
    in_order(grid.blocks, [&](std::int64_t block) {
      current_thread.block = block;
      if (!grid.cooperates) return run_loop(grid, thread);
      clear_shared();
      run_block(grid);
    });
  });
}

void wait_for_block() { wait(State::at_block); }

std::uint64_t exchange(std::uint64_t bits, unsigned lane) {
  if (!current_thread.grid.cooperates) {
    wait(State::at_warp);
    return bits;
  }
  // Two slots, used alternately: no lane writes to a slot again before all lanes have read it.
  const unsigned turn = current().exchanges++ % 2;
  current().given[turn] = bits;
  const unsigned first = current_thread.thread / k_warp * k_warp;
  wait(State::at_warp);
  return g_machine.threads[first + lane].given[turn];
}

void* shared_bytes(std::size_t bytes) {
  constexpr std::size_t k_alignment = 16;
  constexpr std::size_t k_gap = 64;
  if (!current_thread.grid.cooperates) {
    g_machine.error = "a kernel that does not cooperate shares memory, in " + position();
    // A loop cannot stop in the middle: the thread continues with memory that it may access.
    g_machine.shared_high = k_shared_bytes;
    clear_shared();
    unpoison(g_machine.shared.data(), std::min(bytes, k_shared_bytes));
    return g_machine.shared.data();
  }
  Thread& t = current();
  std::byte* begin = g_machine.shared.data() + t.shared_used;
  t.shared_used += (bytes + k_alignment - 1) / k_alignment * k_alignment + k_gap;
  if (t.shared_used > k_shared_bytes) {
    g_machine.error = "a block shares more than 48 KiB";
    t.state = State::done;
    for (;;) t.fiber.switch_to(g_machine.caller);
  }
  g_machine.shared_high = std::max(g_machine.shared_high, t.shared_used);
  unpoison(begin, bytes);
  return begin;
}

}  // namespace halfstep::backend::cuda::kernels::shim

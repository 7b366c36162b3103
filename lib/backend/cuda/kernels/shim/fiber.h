#pragma once
// A function on a stack of its own that can stop in its middle and go on later.

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>
#include <memory>

namespace halfstep::backend::cuda::kernels::shim {

/// A stack and where its execution stands. What it runs never returns; it is left by switch_to().
class Fiber {
 public:
  /// Of the thread that calls it, which has its stack already.
  Fiber() = default;
  /// Calls `entry` when it is first switched to.
  explicit Fiber(void (*entry)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Stops here, and goes on where `next` stopped. `this` must be the running one.
  void switch_to(Fiber& next);
  /// Called first in what a fiber runs.
  void entered();

 private:
  static constexpr std::size_t k_stack_bytes = 128 * 1024;

  void arrived();

  std::jmp_buf place_;
  ucontext_t start_{};
  std::unique_ptr<std::byte[]> stack_;
  bool started_ = true;
  // AddressSanitizer's view of the stack.
  void* fake_stack_ = nullptr;
  const void* bottom_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace halfstep::backend::cuda::kernels::shim

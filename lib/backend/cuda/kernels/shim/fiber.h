#pragma once
// A coroutine with its own stack.

#include <ucontext.h>

#include <csetjmp>
#include <cstddef>
#include <memory>

namespace halfstep::backend::cuda::kernels::shim {

/// A stack and its point of execution. The function it runs never returns; it is left by
/// switch_to().
class Fiber {
 public:
  /// Represents the calling thread, which has a stack already.
  Fiber() = default;
  /// Calls `entry` when it is first switched to.
  explicit Fiber(void (*entry)());
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Suspends this fiber and resumes `next`. `this` must be the running one. AddressSanitizer takes
  /// a jump in an instrumented function for the end of a stack, which costs two system calls.
  [[gnu::no_sanitize_address]] void switch_to(Fiber& next);
  /// Must be the first call in a fiber's function.
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

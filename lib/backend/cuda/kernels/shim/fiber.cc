#include "backend/cuda/kernels/shim/fiber.h"

// AddressSanitizer must know which stack is running; without it these functions do not exist.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack,
                                                  const void* bottom,
                                                  std::size_t bytes);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack,
                                                   const void** bottom,
                                                   std::size_t* bytes);
}

namespace halfstep::backend::cuda::kernels::shim {
namespace {

/// The fiber that switched last: the sanitizer reports the bounds of its stack to the next one.
Fiber* g_left = nullptr;

}  // namespace

Fiber::Fiber(void (*entry)())
    : stack_(new std::byte[k_stack_bytes]),
      started_(false),
      bottom_(stack_.get()),
      bytes_(k_stack_bytes) {
  getcontext(&start_);
  start_.uc_stack.ss_sp = stack_.get();
  start_.uc_stack.ss_size = k_stack_bytes;
  makecontext(&start_, entry, 0);
}

void Fiber::switch_to(Fiber& next) {
  g_left = this;
  if (__sanitizer_start_switch_fiber != nullptr) {
    __sanitizer_start_switch_fiber(&fake_stack_, next.bottom_, next.bytes_);
  }
  // ucontext creates a stack; all other switches are jumps, which make no system call.
  if (_setjmp(place_) == 0) {
    if (next.started_) _longjmp(next.place_, 1);
    next.started_ = true;
    setcontext(&next.start_);
  }
  arrived();
}

void Fiber::entered() { arrived(); }

void Fiber::arrived() {
  if (__sanitizer_finish_switch_fiber != nullptr) {
    __sanitizer_finish_switch_fiber(fake_stack_, &g_left->bottom_, &g_left->bytes_);
  }
}

}  // namespace halfstep::backend::cuda::kernels::shim

#include "train/interrupt.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace halfstep::train {
namespace {

volatile std::sig_atomic_t g_checkpoint = 0;
volatile std::sig_atomic_t g_interrupt = 0;
volatile std::sig_atomic_t g_preempt = 0;
/// The previous handlers, by signal.
std::vector<std::pair<int, struct sigaction>> g_previous;

/// The stack of the handler, as large as a frame with the registers of AMX and more. oneDNN's
/// generated GEMM for AVX (jit_avx_gemm_f32) moves the stack pointer into a buffer of its own,
/// below which the system would write the frame of a signal, over the heap.
alignas(64) std::array<std::byte, 65536> g_stack;

extern "C" void halfstep_on_signal(int signal) {
  if (signal == SIGHUP) {
    g_checkpoint = 1;
  } else if (signal == SIGINT) {
    if (g_interrupt != 0) _exit(130);
    g_interrupt = 1;
  } else {
    g_preempt = 1;
  }
}

}  // namespace

InterruptGuard::InterruptGuard(int leave) {
  stack_t stack{};
  sigaltstack(nullptr, &stack);
  // AddressSanitizer has set one, which it will release itself.
  owns_stack_ = (stack.ss_flags & SS_DISABLE) != 0;
  if (owns_stack_) {
    stack = {.ss_sp = g_stack.data(), .ss_flags = 0, .ss_size = g_stack.size()};
    sigaltstack(&stack, nullptr);
  }
  g_checkpoint = 0;
  g_interrupt = 0;
  g_preempt = 0;
  struct sigaction action {};
  action.sa_handler = halfstep_on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  g_previous.clear();
  for (const int signal : std::set{SIGHUP, SIGINT, SIGTERM, leave}) {
    g_previous.emplace_back(signal, action);
    sigaction(signal, &action, &g_previous.back().second);
  }
}

InterruptGuard::~InterruptGuard() {
  for (const auto& [signal, action] : g_previous) sigaction(signal, &action, nullptr);
  if (!owns_stack_) return;
  const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  sigaltstack(&none, nullptr);
}

Request take_request() {
  if (g_interrupt != 0) return Request::interrupt;
  if (g_preempt != 0) return Request::preempt;
  if (g_checkpoint != 0) {
    g_checkpoint = 0;
    return Request::checkpoint;
  }
  return Request::none;
}

std::function<Request()> requests_before(std::chrono::steady_clock::time_point limit,
                                         std::function<Request()> requests) {
  using Clock = std::chrono::steady_clock;
  return [limit,
          requests = std::move(requests),
          last = std::optional<Clock::time_point>(),
          longest = Clock::duration::zero()]() mutable {
    const Clock::time_point now = Clock::now();
    if (last) longest = std::max(longest, now - *last);
    last = now;
    return std::max(requests(), now + longest < limit ? Request::none : Request::time_limit);
  };
}

}  // namespace halfstep::train

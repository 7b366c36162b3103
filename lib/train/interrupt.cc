#include "train/interrupt.h"

#include <unistd.h>

#include <array>
#include <atomic>

namespace halfstep::train {
namespace {

constexpr std::array k_signals{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

volatile std::sig_atomic_t g_checkpoint = 0;
volatile std::sig_atomic_t g_interrupt = 0;
volatile std::sig_atomic_t g_preempt = 0;
std::array<struct sigaction, k_signals.size()> g_previous;

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

InterruptGuard::InterruptGuard() {
  g_checkpoint = 0;
  g_interrupt = 0;
  g_preempt = 0;
  struct sigaction action {};
  action.sa_handler = halfstep_on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < k_signals.size(); ++i)
    sigaction(k_signals[i], &action, &g_previous[i]);
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < k_signals.size(); ++i)
    sigaction(k_signals[i], &g_previous[i], nullptr);
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

}  // namespace halfstep::train

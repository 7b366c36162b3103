#pragma once
// Signals become requests that training looks at between two steps. The handler only sets a flag.

#include <csignal>

namespace halfstep::train {

enum class Request {
  none,
  checkpoint,  ///< SIGHUP: save and go on
  interrupt,   ///< SIGINT: save and leave with 130; a second one leaves at once
  preempt,     ///< SIGTERM, SIGUSR1, SIGUSR2: save and leave with 75
};

/// Takes over SIGHUP, SIGINT, SIGTERM, SIGUSR1 and SIGUSR2 until destroyed.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// The strongest request so far. A request to leave stands; one for a checkpoint is taken away.
Request take_request();

}  // namespace halfstep::train

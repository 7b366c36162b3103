#pragma once
// Signals become requests that training looks at between two steps. The handler only sets a flag.

#include <csignal>

namespace halfstep::train {

enum class Request {
  none,
  checkpoint,  ///< SIGHUP: save and go on
  interrupt,   ///< SIGINT: save and leave with 130; a second one leaves at once
  preempt,     ///< SIGTERM or the signal of the job's scheduler: save and leave with 75
};

/// Takes over SIGHUP, SIGINT, SIGTERM and `leave` until destroyed.
class InterruptGuard {
 public:
  /// `leave` is the signal that a scheduler sends before it ends a job, such as SIGUSR1.
  explicit InterruptGuard(int leave = SIGTERM);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// The strongest request so far. A request to leave stands; one for a checkpoint is taken away.
Request take_request();

}  // namespace halfstep::train

#pragma once
// Signals become requests that training polls between two steps. The handler only sets a flag.

#include <csignal>

namespace halfstep::train {

enum class Request {
  none,
  checkpoint,  ///< SIGHUP: save and continue
  interrupt,   ///< SIGINT: save and exit with 130; a second one exits immediately
  preempt,     ///< SIGTERM or the signal of the job's scheduler: save and exit with 75
};

/// Handles SIGHUP, SIGINT, SIGTERM and `leave` until destroyed.
class InterruptGuard {
 public:
  /// `leave` is the signal that a scheduler sends before it ends a job, such as SIGUSR1.
  explicit InterruptGuard(int leave = SIGTERM);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// The strongest request so far. A request to exit persists; one for a checkpoint is cleared.
Request take_request();

}  // namespace halfstep::train

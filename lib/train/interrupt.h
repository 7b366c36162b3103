#pragma once
// Signals and time limits become requests that training polls between two steps. The handler of a
// signal only sets a flag.

#include <chrono>
#include <csignal>
#include <functional>

namespace halfstep::train {

enum class Request {
  none,
  checkpoint,  ///< SIGHUP: save and continue
  interrupt,   ///< SIGINT: save and exit with 130; a second one exits immediately
  time_limit,  ///< save and exit with 75 before the job's scheduler ends the process
  preempt,     ///< SIGTERM or the signal of the job's scheduler: save and exit with 75
};

/// Handles SIGHUP, SIGINT, SIGTERM and `leave` until destroyed, on a stack of its own in the
/// calling thread, which is the one that runs kernels beside the pool; the system gives it the
/// signals.
class InterruptGuard {
 public:
  /// `leave` is the signal that a scheduler sends before it ends a job, such as SIGUSR1.
  explicit InterruptGuard(int leave = SIGTERM);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  bool owns_stack_ = false;
};

/// The strongest request so far. A request to exit persists; one for a checkpoint is cleared.
Request take_request();

/// The results of `requests`, and Request::time_limit as soon as the next call may come after
/// `limit`, that is if it takes as long as the longest interval between two calls so far (a step,
/// or the validation of an epoch).
std::function<Request()> requests_before(std::chrono::steady_clock::time_point limit,
                                         std::function<Request()> requests);

}  // namespace halfstep::train

#pragma once
// The state of a run besides the variables, and its beginning: fresh, from weights, or from a
// checkpoint.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/best_weights.h"
#include "train/interrupt.h"
#include "train/progress.h"
#include "train/session.h"

namespace halfstep::train {

struct TrainOptions {
  /// The directory in which checkpoints are written now; empty for none.
  std::function<std::string()> directory;
  std::string resume;     ///< a checkpoint to resume from; "" starts fresh
  std::string init_from;  ///< weights to start from; "" for the initializers
  bool saves = true;      ///< of several ranks one writes the checkpoints
  /// Polled between steps; may be empty. Of several ranks the strongest request counts for all.
  std::function<Request()> requests;
  bool evaluate_test = true;    ///< once, at the end, when the data has a test split
  bool numerics = false;        ///< sample as the config's report.numerics says
  double seconds_ahead = 0.25;  ///< of StepRunnerOptions
  /// Settings that differ from those of the resumed run: "path: before -> after".
  std::vector<std::string> changed;
};

/// The number of batches of an epoch and of a run.
struct RunLength {
  std::int64_t steps_per_epoch = 1;
  std::int64_t steps = 0;  ///< batches after which training ends, unless it ends earlier
};

RunLength run_length(const Session& session);

/// Wall time of a run over all its processes.
class RunClock {
 public:
  void set_earlier(double seconds) { earlier_seconds_ = seconds; }
  double seconds() const;

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double earlier_seconds_ = 0;  ///< of the processes before this one
};

struct RunState {
  RunClock clock;
  Progress progress;
  BestWeights best;
  /// About the resume of a run of other processes.
  std::vector<config::Warning> warnings;

  bool done() const { return progress.finished.has_value(); }
};

/// Loads the session's variables or keeps the initialized ones, depending on the options. A
/// completed run that the config extends is opened again. Errors: UserError(data) for checkpoints
/// that do not fit and for other training samples than those of the resumed run; UserError(config)
/// for an end of training before the checkpoint.
RunState begin_run(Session& session, const TrainOptions& options, const RunLength& length);

}  // namespace halfstep::train

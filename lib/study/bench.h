#pragma once
// Step times only: no validation, no test, no accuracy.

#include <functional>

#include "report/bench_report.h"
#include "study/rounds.h"

namespace halfstep::study {

/// The first variant is the reference of the others.
struct BenchOptions : StudyOptions {
  std::int64_t warmup = 20;
  std::int64_t steps = 200;
  std::int64_t repeats = 5;  ///< each with newly initialized weights and newly allocated memory
  bool profile = false;      ///< a separate pass afterwards that times every op
};

/// Trains for `warmup + steps` full batches after the first, per repeat and policy, with the
/// policies interleaved, and returns the report, to be completed (report/context.h). A diverging
/// run ends the benchmark with that status; an interruption keeps the complete repeats. Errors:
/// UserError(config) when the data has no full batch; as Session and Trainer.
report::BenchReport bench(const BenchOptions& options,
                          const data::Dataset& dataset,
                          const backend::Backend& backend,
                          StudyObserver& observer);

/// Medians over up to `steps` training steps of the full batch, after a few for warm-up, in which
/// every launch is timed; fewer when `stop` returns true, and nothing when no step is left. Every
/// step trains on the first samples.
std::optional<report::Profile> profile_ops(train::Session& session,
                                           std::int64_t steps,
                                           const std::function<bool()>& stop = {});

}  // namespace halfstep::study

#pragma once
// Step times alone: no validation, no test, no accuracy.

#include <functional>

#include "study/compare.h"
#include "train/bench_result.h"

namespace halfstep::study {

struct BenchOptions {
  std::vector<Variant> variants;  ///< the first is what the others are compared with
  std::int64_t warmup = 20;
  std::int64_t steps = 200;
  std::int64_t repeats = 5;  ///< each from fresh weights and fresh memory
  bool profile = false;      ///< a pass of its own afterwards, with the time of every op
  double slice_seconds = 0.05;
  std::function<train::Request()> requests;
};

/// Trains for `warmup + steps` full batches after the first, per repeat and policy, the policies
/// in turns. A run that diverges ends the benchmark with that status; an interruption leaves the
/// repeats that are complete.
/// Errors: UserError(config) when the data has no full batch; whatever Session and Trainer throw.
train::BenchResult bench(const BenchOptions& options,
                         const data::Dataset& dataset,
                         const backend::Backend& backend,
                         StudyObserver& observer);

}  // namespace halfstep::study

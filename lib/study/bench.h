#pragma once
// Step times only: no validation, no test, no accuracy.

#include <functional>

#include "study/compare.h"
#include "train/bench_result.h"

namespace halfstep::study {

struct BenchOptions {
  std::vector<Variant> variants;  ///< the first one is the reference of the others
  std::int64_t warmup = 20;
  std::int64_t steps = 200;
  std::int64_t repeats = 5;  ///< each with newly initialized weights and newly allocated memory
  bool profile = false;      ///< a separate pass afterwards that times every op
  double slice_seconds = 0.05;
  std::function<train::Request()> requests;
};

/// Trains for `warmup + steps` full batches after the first, per repeat and policy, with the
/// policies interleaved. A diverging run ends the benchmark with that status; an interruption keeps
/// the complete repeats. Errors: UserError(config) when the data has no full batch; as Session and
/// Trainer.
train::BenchResult bench(const BenchOptions& options,
                         const data::Dataset& dataset,
                         const backend::Backend& backend,
                         StudyObserver& observer);

}  // namespace halfstep::study

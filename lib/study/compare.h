#pragma once
// A paired study of precision policies: for each seed all policies start from the same weights, use
// the same batches and random numbers, and are interleaved in time.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "data/dataset.h"
#include "study/gate.h"
#include "study/policy_words.h"
#include "train/comparison.h"
#include "train/interrupt.h"
#include "train/session.h"

namespace halfstep::study {

struct CompareOptions {
  std::vector<Variant> variants;
  std::string baseline = "float32";  ///< the name of one of the variants
  std::int64_t seeds = 3;            ///< the config's own seed and the following ones
  double margin = 0.002;
  std::vector<Gate> gates;
  double slice_seconds = 0.05;
  /// Polled between turns. A request to leave drops the current seed.
  std::function<train::Request()> requests;
};

/// The progress of a study.
struct StudyProgress {
  std::int64_t round = 0;  ///< seed or repeat, from 1
  std::int64_t rounds = 0;
  std::int64_t step = 0;  ///< of the slowest run
  std::int64_t steps = 0;
  std::string policy = {};  ///< the policy of the current turn
  std::int64_t done = 0;    ///< steps of all policies in all rounds
  std::int64_t total = 0;
};

/// Callbacks of a running study.
class StudyObserver {
 public:
  virtual ~StudyObserver() = default;
  /// Once per policy, before it trains.
  virtual void on_session(const std::string& policy, train::Session& session) {
    static_cast<void>(policy);
    static_cast<void>(session);
  }
  virtual void on_progress(const StudyProgress& progress) { static_cast<void>(progress); }
  virtual void on_run(const train::ComparedRun& run) { static_cast<void>(run); }
};

/// The headline metric and all metrics, depending on config and data: accuracy, or else the loss,
/// on the test split, or else on validation, or else on training data.
struct MetricNames {
  std::string headline;
  std::vector<std::string> all;
};
MetricNames metric_names(const config::RunSpec& spec, const data::Dataset& dataset);

/// Errors: UserError(config) for gates that do not fit, before training starts; as Session and
/// Trainer. A diverged run is part of the result, as is an interruption.
train::Comparison compare(const CompareOptions& options,
                          const data::Dataset& dataset,
                          const backend::Backend& backend,
                          StudyObserver& observer);

}  // namespace halfstep::study

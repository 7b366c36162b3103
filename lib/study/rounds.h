#pragma once
// The rounds of a study, in each of which all policies train in turns: the seeds of a comparison,
// the repeats of a benchmark.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "report/compare_report.h"
#include "study/policy_list.h"
#include "study/turns.h"
#include "train/interrupt.h"
#include "train/session.h"

namespace halfstep::study {

struct StudyOptions {
  std::vector<Variant> variants;
  double slice_seconds = 0.05;
  /// Polled between turns. A stop request drops the current round.
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
  virtual void on_run(const report::ComparedRunBlock& run) { static_cast<void>(run); }
};

/// The run of one policy in one round.
struct VariantRun {
  VariantRun(const Variant& variant, const data::Dataset& dataset, const backend::Backend& backend)
      : name(variant.name),
        session(variant.spec, dataset, backend),
        trainer(session, {}, listener) {}

  std::string name;
  train::Session session;
  TurnListener listener;
  train::Trainer trainer;
};
using VariantRuns = std::vector<std::unique_ptr<VariantRun>>;

/// Precision, work and warnings of a policy, from its first session.
struct PolicySummary {
  analysis::Precision precision;
  double flops_per_step = 0;
  std::vector<report::WarningBlock> warnings;
  std::optional<double> predicted_ms = {};  ///< of a step on a device
};

/// The warnings of all policies, without duplicates.
std::vector<report::WarningBlock> warnings_of(
    const std::map<std::string, PolicySummary>& summaries);

class Rounds {
 public:
  /// `count` rounds. All references must outlive the object.
  Rounds(const StudyOptions& options,
         std::int64_t count,
         const data::Dataset& dataset,
         const backend::Backend& backend,
         StudyObserver& observer);

  /// Trains the variants of round `index`, from 0, in turns: each run to its end or to
  /// `counted` steps that count for its step time. Empty after a stop request.
  VariantRuns run(std::int64_t index,
                  const std::vector<Variant>& variants,
                  std::optional<std::int64_t> counted = {});

  /// Polls for stop requests.
  bool stop_requested();
  /// `completed` unless a stop was requested.
  train::Status left_as() const { return left_as_; }
  /// Of each policy that has begun its first round.
  const std::map<std::string, PolicySummary>& summaries() const { return summaries_; }
  /// A note when other processes kept the processors busy before the study began, else "".
  const std::string& load_note() const { return load_note_; }

 private:
  const StudyOptions& options_;
  std::int64_t count_;
  const data::Dataset& dataset_;
  const backend::Backend& backend_;
  StudyObserver& observer_;
  std::map<std::string, PolicySummary> summaries_;
  std::string load_note_;
  train::Status left_as_ = train::Status::completed;
};

}  // namespace halfstep::study

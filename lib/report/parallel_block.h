#pragma once
// The block `parallel` of a training run's report: its ranks and their traffic.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/fields.h"
#include "train/session.h"

namespace halfstep::report {

/// One rank of a run.
struct RankBlock {
  std::int64_t rank = 0;
  std::string host;
  std::int64_t threads = 1;
  double step_seconds = 0;  ///< mean of a step
  double step_median = 0, step_min = 0, step_max = 0;
  double waited_seconds = 0;                       ///< of it waiting for other ranks, mean
  double compute_seconds = 0;                      ///< the rest
  double summing_seconds = 0;                      ///< with a sum under way, mean
  double sent_bytes = 0;                           ///< per step, to other ranks, mean
  double saved_bytes = 0;                          ///< per step, by 16 bits
  std::uint64_t state_bytes = 0, arena_bytes = 0;  ///< of variables, and of values of a step
  void fields(Fields& f);
};

/// The distance of sums in 16 bits from those in float32.
struct SumErrorBlock {
  std::int64_t steps = 0;
  double relative = 0;
  void fields(Fields& f);
};

/// The messages of synchronized batch normalization in a step, for which both passes wait.
struct SyncBatchNormBlock {
  std::int64_t layers = 0;
  std::int64_t messages = 0;
  double sent_bytes = 0;
  void fields(Fields& f);
};

struct ParallelBlock {
  std::int64_t ranks = 1;
  std::string library;
  std::string all_reduce_dtype;
  std::vector<RankBlock> each;
  std::int64_t slowest = 0;                ///< the rank that computes longest
  double imbalance = 1;                    ///< its compute time over the median rank's
  double waited_share = 0;                 ///< of the time of all ranks
  std::optional<double> hidden_share;      ///< of the sums of the slowest; nothing without any
  std::optional<SumErrorBlock> sum_error;  ///< nothing where sums are float32
  std::optional<SyncBatchNormBlock> sync_batch_norm;  ///< nothing without synchronized layers
  void fields(Fields& f);
};

/// The block of a run of several ranks, after its end; all ranks call it. Nothing in a process
/// alone, and where a rank is lost, which `result` then says.
std::optional<ParallelBlock> gather_ranks(const train::Session& session,
                                          train::TrainResult& result);
/// The block in one line: step times, the rank that computes longest, and the traffic.
std::string parallel_line(const ParallelBlock& block);

}  // namespace halfstep::report

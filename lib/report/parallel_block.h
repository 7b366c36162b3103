#pragma once
// The block `parallel` of a training run's report: its ranks and their traffic.

#include <cstdint>
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
  double step_seconds = 0;     ///< mean of a step
  double waited_seconds = 0;   ///< of it waiting for other ranks, mean
  double compute_seconds = 0;  ///< the rest
  double sent_bytes = 0;       ///< per step, to other ranks, mean
  void fields(Fields& f);
};

struct ParallelBlock {
  std::int64_t ranks = 1;
  std::string library;
  std::string all_reduce_dtype;
  std::vector<RankBlock> each;
  std::int64_t slowest = 0;  ///< the rank that computes longest
  double imbalance = 1;      ///< its compute time over the median rank's
  double waited_share = 0;   ///< of the time of all ranks
  void fields(Fields& f);
};

/// This rank's part of the block, as text to exchange.
std::string rank_text(const train::Session& session,
                      const std::string& host,
                      const train::TrainResult& result);
/// The block from the texts of all ranks.
ParallelBlock parallel_block(const train::Session& session, const std::vector<std::string>& texts);

}  // namespace halfstep::report

#pragma once
// Exchanges between ranks in a training step, besides all_reduce() of step_graph.h.

#include <string_view>
#include <vector>

#include "nn/step_graph.h"

namespace halfstep::nn {

/// Whether a fetch of a step is a sum over its microbatches.
bool is_sum(std::string_view fetch);

/// All-reduces values that are ready at the same time in one message.
std::vector<graph::Value> sum_over_ranks(graph::Builder& b,
                                         const std::vector<graph::Value>& values,
                                         int ranks);

/// All-gathers the masters into the copies of the weights, in buckets of one dtype. Lowering moves
/// the gathers to the start of the next step (passes::start_sums_early).
class WeightGather {
 public:
  /// Of the masters of a step.
  explicit WeightGather(StepBuilder& step);

  /// After the update of this master.
  void add(graph::Builder& b, const Weight& weight);
  /// Once, after all of them.
  void finish(graph::Builder& b);

 private:
  struct Bucket {
    DType dtype;
    std::int64_t bytes = 0;
    std::vector<graph::Value> slices = {}, copies = {};
    graph::Value start = {};  ///< valid once the gather has started
  };
  std::int64_t bytes_of(graph::Builder& b, const Weight& weight) const;
  void start(graph::Builder& b, Bucket& bucket) const;

  Shard shard_;
  std::int64_t enough_ = 0;  ///< bytes after which a bucket is full
  std::vector<Bucket> buckets_;
};

}  // namespace halfstep::nn

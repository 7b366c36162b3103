#pragma once
// The parts of a training step that exchange numbers with other ranks; all_reduce() is a pass of
// its own (step_graph.h).

#include <string_view>
#include <vector>

#include "nn/step_graph.h"

namespace halfstep::nn {

/// Whether a result of a step is the sum of those of the parts of its batch.
bool is_sum(std::string_view fetch);

/// The sums over the ranks of values that are ready at the same time, in one message.
std::vector<graph::Value> sum_over_ranks(graph::Builder& b,
                                         const std::vector<graph::Value>& values,
                                         int ranks);

/// Writes the masters of all ranks to the copies of the weights, in buckets of one dtype. Lowering
/// moves them to the start of the next step (passes::start_sums_early).
class WeightGather {
 public:
  /// Of the masters of a step.
  explicit WeightGather(StepDraft& step);

  /// After the update of this master.
  void add(graph::Builder& b, const Weight& weight);
  /// Once, after all of them.
  void finish(graph::Builder& b);

 private:
  struct Bucket {
    DType dtype;
    std::int64_t bytes = 0;
    std::vector<graph::Value> slices = {}, copies = {};
    graph::Value start = {};  ///< valid once it travels
  };
  std::int64_t bytes_of(graph::Builder& b, const Weight& weight) const;
  void start(graph::Builder& b, Bucket& bucket) const;

  Shard shard_;
  std::int64_t enough_ = 0;  ///< bytes after which a bucket is full
  std::vector<Bucket> buckets_;
};

}  // namespace halfstep::nn

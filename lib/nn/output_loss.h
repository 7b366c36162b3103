#pragma once
// The loss and the metrics of each output of the model, for build_loss().

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/mixup.h"
#include "nn/step_graph.h"

namespace halfstep::nn {

/// The nodes of one output of the model.
struct OutputNodes {
  const TrainedOutput& spec;
  std::size_t index;
  graph::Value output;        ///< as the model gives it
  graph::Value predictions;   ///< float32, as LossContext::predictions
  graph::TensorType label{};  ///< of a sample
  std::int64_t positions = 1;
  graph::Value labels{}, sample_weights{};
  graph::Value weights{};     ///< 1 for the losses that a mask keeps, else 0; valid with a mask
  graph::Value per_sample{};  ///< losses without the weights of samples
  graph::Value loss{};        ///< mean of per_sample; both are not valid without a loss
};

/// The number of steps that the mask of an output keeps, over all ranks; float32 scalar.
graph::Value count_kept(StepBuilder& step, graph::Value mask);

/// Fetches output `i` and, unless training does without them, its classes.
OutputNodes begin_output(StepBuilder& step, std::size_t i, graph::Value output);

/// Sets the label type of each output. Errors: UserError(config) with all outputs whose loss does
/// not accept it.
void check_labels(const StepBuilder& step, std::vector<OutputNodes>& outputs);

/// Slices the labels of an output from those of all outputs; class numbers are flattened.
graph::Value output_labels(StepBuilder& step, const OutputNodes& nodes, graph::Value all_labels);

/// bool mask of the labels that the loss does not ignore; not valid where it ignores none.
graph::Value counted_labels(StepBuilder& step, const OutputNodes& nodes, graph::Value labels);

/// The logical and of two masks; one that is not valid keeps all.
graph::Value both_masks(StepBuilder& step,
                        const OutputNodes& nodes,
                        graph::Value mask,
                        graph::Value counted);

/// Sets the values that the metrics of an output are computed from, and its mean loss if it has
/// one. `mask`: of the output, not valid without one.
void build_output_loss(StepBuilder& step,
                       OutputNodes& nodes,
                       graph::Value all_labels,
                       graph::Value mask,
                       const std::optional<Mixup>& mixup);

/// Fetches the sums of an output's metrics over the microbatch.
void build_metrics(StepBuilder& step, const OutputNodes& nodes);

}  // namespace halfstep::nn

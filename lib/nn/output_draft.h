#pragma once
// The parts of build_loss() that each output of the model has: its loss and its metrics.

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/mixup.h"
#include "nn/step_graph.h"

namespace halfstep::nn {

/// An output of the model, and the values that its metrics are computed from.
struct OutputDraft {
  const TrainedOutput& spec;
  std::size_t index;
  graph::Value output;        ///< as the model gives it
  graph::Value predictions;   ///< float32, as LossContext::predictions
  graph::TensorType label{};  ///< of a sample
  std::int64_t positions = 1;
  graph::Value labels{}, sample_weights{};
  graph::Value weights{};     ///< 1 for the losses that a mask keeps, else 0; valid with a mask
  graph::Value per_sample{};  ///< losses without the weights of samples
  graph::Value loss{};        ///< their mean; not valid, as they are, of an output without a loss
};

/// The steps that the mask of an output keeps, over all ranks, float32.
graph::Value count_kept(StepDraft& step, graph::Value mask);

/// Fetches output `i` and, unless training does without them, its classes.
OutputDraft begin_output(StepDraft& step, std::size_t i, graph::Value output);

/// Gives each output its label. Errors: UserError(config) with all that their losses cannot
/// compare.
void check_labels(const StepDraft& step, std::vector<OutputDraft>& outputs);

/// The labels of an output, cut out of those of all outputs; class numbers in one row.
graph::Value output_labels(StepDraft& step, const OutputDraft& draft, graph::Value all_labels);

/// Whether the loss of the output counts each of its labels; not valid where it counts all.
graph::Value counted_labels(StepDraft& step, const OutputDraft& draft, graph::Value labels);

/// The losses that both keep; either may be not valid, and then keeps all.
graph::Value both_masks(StepDraft& step,
                        const OutputDraft& draft,
                        graph::Value mask,
                        graph::Value counted);

/// Sets the mean loss of an output that has one, from the labels of all outputs, and the values of
/// its metrics.
/// `mask`: of the output, not valid where it has none.
void build_output_loss(StepDraft& step,
                       OutputDraft& draft,
                       graph::Value all_labels,
                       graph::Value mask,
                       const std::optional<Mixup>& mixup);

/// Fetches the sums of an output's metrics over the step's part.
void build_metrics(StepDraft& step, const OutputDraft& draft);

}  // namespace halfstep::nn

#pragma once
// One training step as a graph: input, forward pass, float32 loss, loss scale, gradients, unscaling
// and finite check, clipping, updates. There is no control flow: in a skipped step the value `ok`,
// an input of every update, is false.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_spec.h"
#include "core/batch_share.h"
#include "graph/builder.h"
#include "graph/ops/ops.h"
#include "nn/model.h"
#include "nn/optim/optimizer.h"
#include "nn/trained_output.h"
#include "precision/loss_scale.h"

namespace halfstep::nn {

/// The properties of the data that a step depends on.
struct DataShape {
  Shape sample;  ///< of one sample as stored, [28, 28, 1]
  DType sample_dtype = DType::uint8;
  Shape label;  ///< of one label; rank 0 for a class number, [positions] for one at each of them
  DType label_dtype = DType::int32;
  std::string stored = {};  ///< form and layout of samples in the files, for messages
  /// Of several outputs the shape and dtype of a label of each; the values of all follow each other
  /// in `label`, whose dtype is float32. Else none.
  std::vector<graph::TensorType> labels = {};
};

/// The specification of the step, read from a config and checked once.
struct StepSpec {
  Model model;
  Where input_where;                   ///< of the model's input
  std::vector<TrainedOutput> outputs;  ///< in the order of the model's
  std::vector<double> class_weights;   ///< by class, of the loss in training; empty: all alike
  ConfiguredOptimizer optimizer;
  graph::Attrs learning_rate;  ///< of the LearningRate op
  precision::LossScaling loss_scaling;
  config::OnNonfinite on_nonfinite = config::OnNonfinite::stop;
  config::GradDtype grad_dtype = config::GradDtype::compute;
  std::int64_t accumulate_steps = 1;
  config::ParallelSpec parallel;
  bool sample_weights = false;        ///< training and evaluation take a weight for each sample
  std::optional<double> mixup_alpha;  ///< of training samples; absent: they are not mixed
  std::optional<double> input_scale;  ///< of stored samples; absent: 1/255 for bytes, else 1
  std::uint64_t seed = 0;

  /// The counters of the metrics of all outputs, one metric after another.
  std::vector<std::string> counters() const;

  /// By which the step multiplies stored samples; data/inputs.h has scaled floats of several
  /// inputs.
  double scale_of(DType stored) const {
    if (stored == DType::uint8) return input_scale.value_or(1.0 / 255.0);
    return model.inputs.size() > 1 ? 1 : input_scale.value_or(1);
  }
};

/// Reads model, loss, optimizer and precision of a config and builds the forward pass once as a
/// check; all problems go to `diagnostics`, warnings to `model.warnings`.
StepSpec read_step_spec(const config::RunSpec& spec, Diagnostics& diagnostics);

/// The purpose of a graph. `train` updates variables; `evaluate` computes loss and metrics;
/// `predict` needs no labels.
enum class Purpose { train, evaluate, predict };

/// A training step under construction: the values that one function below passes to the next. It
/// must not move, since the builder refers to the graph.
struct StepBuilder {
  StepBuilder(const StepSpec& of,
              const DataShape& of_data,
              const BatchShare& of_batch,
              Purpose of_purpose)
      : spec(of),
        data(of_data),
        share(of_batch),
        purpose(of_purpose),
        num_microbatches(
            purpose == Purpose::train ? std::min(of.accumulate_steps, share.min_samples()) : 1),
        microbatch(share.micro_batch(0, num_microbatches)),
        b(graph, graph::op_table()) {}

  const StepSpec& spec;
  const DataShape& data;
  const BatchShare share;  ///< the samples that the step computes
  const Purpose purpose;
  std::int64_t num_microbatches;  ///< computed one after another, of nearly equal size
  BatchShare microbatch;          ///< the one whose loss is built
  /// For each output the number of steps that its mask keeps, over all microbatches and ranks; not
  /// valid without a mask, and where one microbatch is the batch.
  std::vector<graph::Value> kept = std::vector<graph::Value>(spec.outputs.size());
  std::vector<int> previous;  ///< nodes of earlier microbatches that must run before this one
  graph::Graph graph;
  graph::Builder b;
  graph::Value loss;
  ModelRecord record;
  /// Set by differentiate_loss(): the loss scale, where there is one, and the gradients of the
  /// weights that reach the loss, still scaled.
  precision::ScaleVariables scale_variables;
  graph::Value scale;
  std::vector<Weight> weights;
  std::vector<graph::Value> gradients;
  bool promoted = false;  ///< by promote_weight_gradients()
};

/// The origin of nodes of a step: "float32: ..." in `reason` says why they have their dtype.
graph::Origin step_origin(graph::Phase phase, std::string reason, std::string layer = {});

/// Builds input, forward pass and, unless the step only predicts, loss and metrics of a microbatch.
/// Its mean loss is weighted by its share of the batch, so that losses and gradients of all
/// microbatches and ranks add up to those of the batch. Errors: UserError(config) when shapes do
/// not match.
void build_loss(StepBuilder& step);

// Each of the following appends to a training step, in this order, and is a pass of
// plan/pipeline.h.

/// Appends the scaled loss and its gradients with respect to the trainable weights.
/// Errors: UserError(config) when no weight reaches the loss, or an op on the way has no gradient.
void differentiate_loss(StepBuilder& step);

/// With precision.grad_dtype float32, replaces weight gradients that are rounded to 16 bits before
/// they become float32 by ones that are computed in float32.
void promote_weight_gradients(StepBuilder& step);

/// Gradient accumulation: appends loss and gradients of all microbatches but the first. Each runs
/// after the gradients of the previous one were added, so that activations need the memory of one
/// microbatch. The accumulators are float32, rounded to the dtype of the gradient once. Moving
/// statistics are averaged over the microbatches, states concatenated.
void accumulate_gradients(StepBuilder& step);

/// `mean`, over a share of a batch, times the share's fraction of the batch's samples.
graph::Value weighted_by_share(graph::Builder& b, graph::Value mean, const BatchShare& share);

/// With several ranks, all-reduces the gradients, still scaled, in parallel.all_reduce_dtype, and
/// the loss, the metrics and the new moving statistics in float32. The finite check then has the
/// same result on all ranks. Where masters and slots are sharded, gradients are reduce-scattered
/// instead, and the weights replaced by the masters.
void all_reduce(StepBuilder& step);

/// Appends unscaling and the finite check, clipping, optimizer updates, the exchange of divided
/// masters, moving statistics, counters and the next loss scale, in this order.
void append_updates(StepBuilder& step);

/// int64 counter of applied (or attempted) steps; schedules and bias corrections read it.
inline constexpr std::string_view k_iterations_variable = "optimizer/iterations";

/// The whole step: build_loss() and, for training, differentiate_loss(),
/// promote_weight_gradients(), accumulate_gradients(), all_reduce() and append_updates(), of
/// `batch` samples or a rank's share of them. Input slots: images [rows, ...], labels [rows, ...],
/// where samples have weights sample_weights (float32 [rows]), ordinal (int64 scalar); a step of
/// training with mixup takes the rows of the samples and then those of their partners. Fetches:
/// loss (float32 scalar, regularization included), outputs (float32 [rows of the first
/// microbatch, ...]; this and predictions are outputs/<key> of several outputs), one
/// `metric/<counter>` sum over the batch (float32 scalar) per counter of a metric, predictions
/// (int64 [batch], or [batch * positions] for a class at each position); where the model carries
/// states, each is an input of evaluate and predict, and a fetch of the same name, the state after
/// the batch (both float32 [rows, units]); train adds ok (bool), learning_rate and, if configured,
/// loss_scale (before the step) and global_norm. Errors: UserError(config) when shapes do not fit.
graph::Graph build_step(const StepSpec& spec,
                        const DataShape& data,
                        const BatchShare& batch,
                        Purpose purpose);

/// Warnings about the graph: weights that no gradient reaches, 16-bit model output or loss input,
/// pure 16-bit policies, gradients unscaled in float16, a loss scale without float16. The graph is
/// the one that runs, after a rewrite.
std::vector<config::Warning> graph_warnings(const config::RunSpec& config,
                                            const StepSpec& spec,
                                            const graph::Graph& graph);

}  // namespace halfstep::nn

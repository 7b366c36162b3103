#pragma once
// Properties of a model's output that follow from its layers alone, without data.

#include <cstdint>
#include <string>
#include <vector>

#include "nn/losses/loss.h"
#include "nn/model.h"

namespace halfstep::nn {

struct ModelOutput {
  Shape shape = {};  ///< of one sample
  /// The op that the output comes from: "Softmax" or "Sigmoid", else "".
  std::string activation = {};
  /// Whether all values are results of a softmax or sigmoid, possibly through ops that keep them
  /// within 0 to 1.
  bool probabilities = false;
  bool masked = false;           ///< whether a mask leaves rows out of losses and metrics
  std::vector<bool> reads = {};  ///< for each input of the model, whether the output depends on it
};

/// Shapes and dtypes of the outputs of each node, in the order of model.nodes.
/// Errors: as model_outputs.
std::vector<std::vector<graph::TensorType>> layer_outputs(const Model& model, std::int64_t batch);

/// Builds the forward pass of training once and discards it; one for each output of the model.
/// Errors: UserError(config) at the layer whose shapes do not fit.
std::vector<ModelOutput> model_outputs(const Model& model);

/// W113 when a loss of probabilities receives scores, W114 when a loss of scores receives
/// probabilities. `where` is the position of the loss in the config.
std::vector<config::Warning> output_warnings(const ModelOutput& output,
                                             const Loss& loss,
                                             std::string_view last_layer,
                                             const Where& where);

}  // namespace halfstep::nn

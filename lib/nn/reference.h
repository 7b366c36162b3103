#pragma once
// Descriptions of layers, losses and optimizers for the reference, obtained by building them, and
// for the JSON Schema of a config.

#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "core/shape.h"
#include "nn/layers/table.h"
#include "nn/losses/loss.h"
#include "nn/optim/optimizer.h"

namespace halfstep::nn {

/// A variable that a layer declares.
struct VariableDesc {
  std::string name;  ///< without the layer's name: "kernel"
  Shape shape;
  bool trainable = false;
  bool float32 = false;  ///< stored in float32 even under the policies float16 and bfloat16
};

/// The example of a layer and its result.
struct LayerExample {
  std::string text;  ///< "{type: dense, units: 3, activation: relu}"
  Shape input;       ///< of one sample
  Shape output;
  std::vector<VariableDesc> variables;
};

LayerExample layer_example(const LayerDef& def);

/// The slots, each with the shape and dtype of the weight, that an optimizer with default settings
/// keeps for every weight.
std::vector<std::string> optimizer_slots(const OptimizerDef& def);

/// The labels that a loss accepts, in a sentence.
std::string_view labels_doc(const LossDef& def);

/// The types of lib/nn in the JSON Schema of a config: layers, losses, optimizers, schedules and
/// initializers with their fields.
config::SchemaTypes schema_types();

}  // namespace halfstep::nn

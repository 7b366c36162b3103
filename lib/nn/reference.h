#pragma once
// Facts about layers, losses and optimizers for the reference, found by building them rather than
// written down a second time.

#include <string>
#include <string_view>
#include <vector>

#include "core/shape.h"
#include "nn/layers/table.h"
#include "nn/losses/loss.h"
#include "nn/optim/optimizer.h"

namespace halfstep::nn {

/// A variable of a layer.
struct VariableFact {
  std::string name;  ///< without the layer's: "kernel"
  Shape shape;
  bool trainable = false;
  bool float32 = false;  ///< stored in float32 even under the policies float16 and bfloat16
};

/// A layer's example and what comes of it.
struct LayerExample {
  std::string text;  ///< "{type: dense, units: 3, activation: relu}"
  Shape input;       ///< of one sample
  Shape output;
  std::vector<VariableFact> variables;
};

LayerExample layer_example(const LayerDef& def);

/// The variables, each shaped like the weight and of its dtype, that an optimizer keeps for every
/// weight with its default settings.
std::vector<std::string> optimizer_slots(const OptimizerDef& def);

/// The labels that a loss takes, in a sentence.
std::string_view labels_doc(const LossDef& def);

}  // namespace halfstep::nn

#pragma once
// Builds layers from the `model` section of a config, and from layers the nodes of a forward pass.

#include <memory>
#include <string>
#include <vector>

#include "config/run_spec.h"
#include "nn/layers/layer.h"

namespace halfstep::nn {

/// One of the outputs of a node, or an input of the model. In a config `name` is output 0 of a node
/// and `name:i` its output i.
struct Source {
  int node = 0;            ///< index of a node, or -1-i for model input i
  std::size_t output = 0;  ///< of the node

  bool operator==(const Source&) const = default;
};

/// One layer of the model: its own struct plus the shared fields.
struct ModelNode {
  std::string name;
  std::string type;
  Where where;
  std::unique_ptr<Layer> layer;
  MaskUse masks = MaskUse::refused;
  precision::ResolvedPolicy precision;
  bool trainable = true;
  std::optional<RegularizerSpec> activity_regularizer;
  std::vector<Source> from;  ///< the inputs, then the initial states
};

/// This rank among those that divide masters and optimizer slots.
struct Shard {
  int rank = 0;
  int ranks = 1;

  bool divides() const { return ranks > 1; }
};

/// A checked model with its nodes in topological order.
struct Model {
  struct Input {
    std::string name;
    Shape shape;  ///< of one sample
  };
  std::vector<Input> inputs;
  std::vector<ModelNode> nodes;
  std::vector<Source> outputs;
  bool sync_batch_norm = false;  ///< in all layers, whatever their `synchronized` says
  bool carries_states = false;   ///< evaluation takes states as inputs and fetches the next ones
  Shard shard;                   ///< of parallel.shard, where the run has several ranks
  std::vector<config::Warning> warnings;
};

/// Reads `layers` or `inputs/nodes/outputs`. All problems (unknown layer types and fields, dangling
/// or duplicate names, outputs that a node does not have, cycles, wrong number of inputs or initial
/// states, two matching overrides) go to `diagnostics` with their position.
Model read_model(const config::RunSpec& spec, Diagnostics& diagnostics);

/// Of each input the limit of values that layers take as indices there, the smallest of them; 0 for
/// an input without such a layer.
std::vector<std::int64_t> index_limits(const Model& model);

/// The shape of a sample in one array: that of the input, or of several [values of all of them].
Shape sample_shape(const Model& model);

/// The results of a forward pass.
struct Forward {
  std::vector<graph::Value> outputs;  ///< one per model output, in its layer's compute dtype
  std::vector<std::vector<LayerOutput>> nodes;  ///< the outputs of each of the model's nodes
  std::vector<graph::Value> masks;              ///< of each model output that has one
  ModelRecord record;
};

/// Emits the forward pass on `inputs` ([batch, ...sample shape]); casts floating inputs of each
/// layer to its compute dtype. Variables are named `<layer>/<weight>`. `share`: of the samples,
/// where a step of several ranks or parts is built.
/// Errors: UserError(config) at the layer whose shapes do not fit.
Forward build_forward(graph::Builder& b,
                      const Model& model,
                      std::vector<graph::Value> inputs,
                      graph::Value ordinal,
                      std::uint64_t seed,
                      bool training,
                      const BatchShare& share = 0);

}  // namespace halfstep::nn

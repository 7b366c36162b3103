#pragma once
// A layer is a plain struct: Keras's fields with Keras's defaults, and a function that emits nodes.
//
//   struct Dense {
//     std::int64_t units = 0;
//     ...
//     void fields(config::Fields& f) { f.field("units", units, {.doc = "...", .required = true,
//     .min = 1}); } graph::Value build(LayerContext& c, std::span<const graph::Value> x) const;
//   };
//
// One file per layer (a family of trivial ones may share a file) plus one row in table.cc:
// layer_def<Dense>("dense", "y = activation(x W + b)").

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/fields.h"
#include "config/reader.h"
#include "graph/builder.h"
#include "nn/initializer.h"
#include "nn/regularizer.h"
#include "precision/policy.h"

namespace halfstep::nn {

/// A variable that changes by assignment, such as a moving average: written with an applied step
/// only.
struct Assignment {
  graph::Value handle;
  graph::Value value;
};

/// A trainable weight as the optimizer sees it.
struct Weight {
  std::string name;
  graph::Value handle;
  graph::Value read;  ///< in the variable's dtype; gradients are taken with respect to it
};

/// What the forward pass of a whole model leaves behind besides its outputs.
struct ModelRecord {
  std::vector<Weight> weights;
  std::vector<Assignment> assignments;
  std::vector<graph::Value> losses;  ///< regularization terms, float32 scalars
};

/// What a layer may ask of its surroundings while it emits nodes.
class LayerContext {
 public:
  graph::Builder& b;
  std::string_view name;  ///< path of the layer
  const precision::Policy& policy;
  bool training;
  bool trainable;
  graph::Value ordinal;  ///< int64 scalar that numbers the batches; keys random ops
  std::uint64_t seed;    ///< of the run
  ModelRecord& record;

  /// A weight in the policy's variable dtype, read and cast to its compute dtype. The regularizer
  /// sees the uncast value.
  graph::Value weight(std::string_view weight_name,
                      const Shape& shape,
                      const InitializerSpec& initializer,
                      const std::optional<RegularizerSpec>& regularizer = {});
  /// The same without the cast to the compute dtype, stored in float32 even under a pure 16-bit
  /// policy: for parameters of normalizations.
  graph::Value float32_weight(std::string_view weight_name,
                              const Shape& shape,
                              const InitializerSpec& initializer,
                              const std::optional<RegularizerSpec>& regularizer = {});
  /// A non-trainable float32 variable; returns its handle.
  graph::Value statistic(std::string_view statistic_name, const Shape& shape, double initial);
  void assign(graph::Value handle, graph::Value value) {
    record.assignments.push_back({handle, value});
  }
  void add_loss(graph::Value loss) { record.losses.push_back(loss); }
  /// A stream number of this layer's own, for random ops; `which` tells several apart.
  std::int64_t stream(int which = 0) const;
  /// The sub-reason of nodes made from here on ("float32: statistics of a normalization").
  void explain(std::string reason) { b.origin().reason = std::move(reason); }
};

/// A configured layer.
class Layer {
 public:
  virtual ~Layer() = default;
  virtual graph::Value build(LayerContext& c, std::span<const graph::Value> x) const = 0;
};

/// A row of the table.
struct LayerDef {
  std::string_view type;
  std::string_view doc;
  std::size_t min_inputs = 1;
  std::size_t max_inputs = 1;
  /// Visits the fields of a fresh layer, for schema and documentation.
  void (*fields)(config::Fields& f) = nullptr;
  /// Reads a layer's map; the keys of LayerSpec (name, type, dtype, trainable, from) are not its.
  std::unique_ptr<Layer> (*make)(const config::Node& node, Diagnostics& diagnostics) = nullptr;
};

inline constexpr std::array<std::string_view, 5> k_common_layer_keys{
    "name", "type", "dtype", "trainable", "from"};

template <class L>
constexpr LayerDef layer_def(std::string_view type,
                             std::string_view doc,
                             std::size_t min_inputs = 1,
                             std::size_t max_inputs = 1) {
  class Held final : public Layer {
   public:
    explicit Held(L l) : layer_(std::move(l)) {}
    graph::Value build(LayerContext& c, std::span<const graph::Value> x) const override {
      return layer_.build(c, x);
    }

   private:
    L layer_;
  };
  LayerDef def{type, doc, min_inputs, max_inputs, nullptr, nullptr};
  def.fields = [](config::Fields& f) {
    L layer;
    layer.fields(f);
  };
  def.make = [](const config::Node& node, Diagnostics& diagnostics) -> std::unique_ptr<Layer> {
    L layer;
    config::read(node, layer, diagnostics, k_common_layer_keys);
    return std::make_unique<Held>(std::move(layer));
  };
  return def;
}

/// All layers, alphabetical.
std::span<const LayerDef> layer_table();
const LayerDef* find_layer(std::string_view type);

}  // namespace halfstep::nn

#pragma once
// A layer is a plain struct: Keras's fields with Keras's defaults, and a function that emits nodes.
//
//   struct Dense {
//     std::int64_t units = 0;
//     void fields(config::Fields& f) {
//       f.field("units", units, {.doc = "outputs", .required = true, .min = 1});
//     }
//     graph::Value build(LayerContext& c, std::span<const graph::Value> x) const;
//   };
//
// A file of related layers ends with their entries,
//
//   extern const LayerDefs k_dense_layers{
//       layer_def<Dense>("dense", "y = activation(x W + b)", {.example = "{units: 4}"})};
//
// which table.cc alone declares and lists. A struct may also have `void check(Diagnostics&
// diagnostics, const Where& where) const` for conditions that span fields, and `static constexpr
// MaskUse k_masks`, without which an input with a mask is an error.

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/reader.h"
#include "nn/layers/layer.h"

namespace halfstep::nn {

/// The fields that all layers share.
struct LayerCommon {
  std::optional<std::string> name;
  std::string type;
  std::optional<std::string> dtype;
  bool trainable = true;
  std::optional<RegularizerSpec> activity_regularizer;
  std::vector<std::string> from;

  /// All of them; settings() omits name, type and from.
  void fields(config::Fields& f);
  void settings(config::Fields& f);
};

/// The keys of LayerCommon.
inline constexpr std::array<std::string_view, 6> k_common_layer_keys{
    "name", "type", "dtype", "trainable", "activity_regularizer", "from"};

inline constexpr std::size_t k_any_number = std::numeric_limits<std::size_t>::max();

/// The part of a definition that most layers leave at its default.
struct LayerTraits {
  std::size_t min_inputs = 1;
  std::size_t max_inputs = 1;
  /// The initial states, which `initial_state` names or `from` behind the inputs; see
  /// Layer::states().
  std::size_t max_states = 0;
  /// Fields of a small example layer, and the extents of a sample for it; both as in a config.
  std::string_view example = "{}";
  std::string_view example_input = "[4]";
  /// Whether a sample's output in training depends on the other samples of the batch.
  bool mixes_samples = false;
  /// For the reference: axes of input and output, and the compute dtype where it is not the
  /// policy's.
  std::string_view shapes = "x [batch, ...], y as x";
  std::string_view numerics = {};
};

/// "1 input", "2 or more inputs", "1 input and up to 2 initial states".
std::string input_count(const LayerTraits& traits);

/// The reason why halfstep does not have an argument of Keras's layers, "" for others.
std::string_view missing_argument(std::string_view name);
/// Reports the keys of a layer's map that are such arguments and no field, and returns them with
/// the keys of LayerCommon: none of them is read as a field.
std::vector<std::string_view> skipped_keys(const config::Node& node,
                                           void (*fields)(config::Fields& f),
                                           Diagnostics& diagnostics);

/// An entry of the table.
struct LayerDef {
  std::string_view type;
  std::string_view doc;
  LayerTraits traits;
  MaskUse masks = MaskUse::refused;
  /// Visits the fields of a fresh layer, for schema and documentation.
  void (*fields)(config::Fields& f) = nullptr;
  /// Reads a layer's map; the keys of LayerCommon are skipped.
  std::unique_ptr<Layer> (*make)(const config::Node& node, Diagnostics& diagnostics) = nullptr;
};

/// The entries of the layers of one file.
using LayerDefs = std::initializer_list<LayerDef>;

/// A string literal as the argument of a template.
template <std::size_t n>
struct Literal {
  char text[n];
  constexpr Literal(const char (&from)[n]) { std::copy_n(from, n, text); }  // NOLINT: implicit
};

/// One of several layers that share the struct L, which is initialized with an op and `more`.
template <class L, Literal op, auto... more>
struct Preset : L {
  Preset() : L{op.text, more...} {}
};

template <class L>
constexpr LayerDef layer_def(std::string_view type, std::string_view doc, LayerTraits traits = {}) {
  class Adapter final : public Layer {
   public:
    explicit Adapter(L l) : layer_(std::move(l)) {}
    static void fields(config::Fields& f) {
      L layer;
      layer.fields(f);
    }
    graph::Value build(LayerContext& c, std::span<const graph::Value> x) const override {
      return layer_.build(c, x);
    }
    std::size_t outputs() const override {
      if constexpr (requires { layer_.outputs(); }) return layer_.outputs();
      return 1;
    }
    std::size_t states() const override {
      if constexpr (requires { layer_.states(); }) return layer_.states();
      return 0;
    }
    std::optional<std::int64_t> index_limit() const override {
      if constexpr (requires { layer_.index_limit(); }) return layer_.index_limit();
      return std::nullopt;
    }
    std::optional<Recurrence> recurrence() const override {
      if constexpr (requires { layer_.recurrence(); }) return layer_.recurrence();
      return std::nullopt;
    }
    bool keeps_state() const override {
      if constexpr (requires { layer_.keeps_state(); }) return layer_.keeps_state();
      return false;
    }
    bool masks_zero() const override {
      if constexpr (requires { layer_.mask_zero; }) return layer_.mask_zero;
      return false;
    }

   private:
    L layer_;
  };
  LayerDef def{.type = type, .doc = doc, .traits = traits};
  if constexpr (requires { L::k_masks; }) def.masks = L::k_masks;
  def.fields = Adapter::fields;
  def.make = [](const config::Node& node, Diagnostics& diagnostics) -> std::unique_ptr<Layer> {
    L layer;
    config::read(node, layer, diagnostics, skipped_keys(node, Adapter::fields, diagnostics));
    if constexpr (requires { layer.data_format.check(diagnostics, node.where); }) {
      layer.data_format.check(diagnostics, node.where);
    }
    if constexpr (requires { layer.check(diagnostics, node.where); }) {
      layer.check(diagnostics, node.where);
    }
    return std::make_unique<Adapter>(std::move(layer));
  };
  return def;
}

/// All layers, alphabetical.
std::span<const LayerDef* const> layer_table();
const LayerDef* find_layer(std::string_view type);
/// The same; an unknown type is reported at `where`.
const LayerDef* find_layer(std::string_view type, const Where& where, Diagnostics& diagnostics);

}  // namespace halfstep::nn

// read_model(): the `model` section, with every problem reported at its position.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "config/blocks.h"
#include "config/reader.h"
#include "config/scalar.h"
#include "core/error.h"
#include "core/ranges.h"
#include "nn/layer_policies.h"
#include "nn/layers/table.h"
#include "nn/model.h"
#include "nn/model_order.h"

namespace halfstep::nn {
namespace {

/// An output of a node, or an input of the model, by the name that the config gives it.
struct Reference {
  Source source;
  std::string text;
  Where where;
};

/// A layer as written in the config, before its inputs and policy are resolved.
struct LayerConfig {
  const config::Node* node = nullptr;
  const LayerDef* def = nullptr;
  LayerCommon common;
  std::string name;
  std::vector<Reference> from;  ///< the inputs, then the initial states
  Where where;                  ///< of the layer
  Where name_where;             ///< of its name, or of the layer when it has none
};

bool is_name(std::string_view text) {
  const auto is_name_char = [](char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_';
  };
  const auto inner = [&](char ch) { return is_name_char(ch) || ch == '-' || ch == '.'; };
  return !text.empty() && is_name_char(text.front()) && std::ranges::all_of(text, inner);
}

class ModelReader {
 public:
  ModelReader(const config::RunSpec& spec, Diagnostics& diagnostics)
      : spec_(spec), diagnostics_(diagnostics) {}

  Model read() {
    const std::size_t before = diagnostics_.problems().size();
    if (spec_.model.sequential()) {
      read_sequential();
    } else {
      read_graph();
    }
    // A structure that was read only in part would cause spurious errors.
    if (!broken_ && diagnostics_.problems().size() == before) finish_structure();
    add_layers();
    return std::move(model_);
  }

 private:
  /// For problems that reading the config reports too: reported once.
  void broken(std::string_view at, std::string message) {
    broken_ = true;
    if (first_) diagnostics_.error(spec_.where(at), std::move(message));
  }

  void read_sequential() {
    const config::ModelSpec& m = spec_.model;
    add_input("input", m.input, "model.input");
    if (m.layers.kind != config::Node::Kind::sequence || m.layers.items.empty()) {
      broken("model.layers", "must be a list of at least one layer");
      return;
    }
    for (const config::Node& item : m.layers.items) read_layer(item, {});
    name_layers();
    for (int i = 0; i < static_cast<int>(configs_.size()); ++i) {
      LayerConfig& w = configs_[static_cast<std::size_t>(i)];
      for (const std::string_view key : source_keys(w)) {
        if (w.node->find(key) == nullptr) continue;
        diagnostics_.error(
            where_of(w, key),
            fmt::format("'{}' belongs to a graph of nodes; a layer takes the one before it", key),
            "give `inputs`, `nodes` and `outputs` instead of `layers`");
      }
      w.from.push_back({{i - 1}, {}, w.where});
    }
    outputs_.push_back({{static_cast<int>(configs_.size()) - 1}, {}, {}});
  }

  void read_graph() {
    const config::ModelSpec& m = spec_.model;
    for (const config::NamedExtents& input : m.inputs) {
      add_input(input.name, input.value, "model.inputs." + input.name);
    }
    if (m.nodes.kind != config::Node::Kind::map || m.nodes.entries.empty()) {
      broken("model.nodes", "must be a map of at least one node");
      return;
    }
    for (const config::Node::Entry& entry : m.nodes.entries) {
      read_layer(entry.value, entry.key);
      configs_.back().name_where = entry.where;
    }
    for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
      enter(model_.inputs[i].name, -1 - static_cast<int>(i), spec_.where("model.inputs"));
    }
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      enter(configs_[i].name, static_cast<int>(i), configs_[i].name_where);
    }
    for (LayerConfig& w : configs_) read_sources(w);
    for (std::size_t i = 0; i < m.outputs.size(); ++i) read_output(i);
  }

  void add_input(std::string name, const std::vector<std::int64_t>& extents, std::string_view at) {
    const bool positive =
        std::ranges::all_of(extents, [](std::int64_t extent) { return extent >= 1; });
    if (extents.empty() || !positive) {
      broken(at, "must be a list of extents of at least 1");
    } else if (extents.size() >= Shape::k_max_rank) {
      diagnostics_.error(
          spec_.where(at),
          fmt::format("must be {} extents at most, got {}", Shape::k_max_rank - 1, extents.size()));
      broken_ = true;
    } else if (count(extents) > k_max_elements) {
      diagnostics_.error(spec_.where(at), "is too large");
      broken_ = true;
    }
    if (broken_) {
      model_.inputs.push_back({std::move(name), {}});
      return;
    }
    if (!is_name(name)) refuse_name(name, spec_.where(at));
    model_.inputs.push_back({std::move(name), Shape(extents)});
  }

  /// Reads the shared fields of a layer; `key` is a graph node's name.
  void read_layer(const config::Node& node, std::string_view key) {
    LayerConfig w;
    w.node = &node;
    w.where = w.name_where = node.where;
    if (node.kind != config::Node::Kind::map) {
      diagnostics_.error(
          node.where,
          fmt::format("must be a map with the type of a layer, got {}", config::describe(node)));
    }
    config::Reader reader(node, diagnostics_);
    w.common.fields(reader);
    w.name = key.empty() ? w.common.name.value_or("") : std::string(key);
    if (w.common.name && key.empty()) w.name_where = where_of(w, "name");
    if (w.common.name && !key.empty() && *w.common.name != key) {
      diagnostics_.error(where_of(w, "name"),
                         fmt::format("the name of a node is its key, '{}'", key),
                         "remove 'name'");
    }
    if ((w.common.name || !key.empty()) && !is_name(w.name)) refuse_name(w.name, w.name_where);
    if (!w.common.type.empty()) {
      w.def = find_layer(w.common.type, where_of(w, "type"), diagnostics_);
    }
    configs_.push_back(std::move(w));
  }

  void refuse_name(std::string_view name, const Where& where) {
    diagnostics_.error(where,
                       fmt::format("'{}' is not a name", name),
                       "letters, digits, '_', '-' and '.', starting with a letter, digit or '_'");
  }

  /// Keras's names for unnamed layers: dense, dense_1, ...
  void name_layers() {
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      if (!configs_[i].name.empty()) {
        enter(configs_[i].name, static_cast<int>(i), configs_[i].name_where);
      }
    }
    std::map<std::string, int> count;
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      LayerConfig& w = configs_[i];
      const std::string& type = w.common.type;
      while (w.name.empty() && !type.empty()) {
        const int n = count[type]++;
        std::string name = n == 0 ? type : fmt::format("{}_{}", type, n);
        if (!names_.contains(name)) w.name = std::move(name);
      }
      names_.try_emplace(w.name, static_cast<int>(i));
    }
  }

  void enter(const std::string& name, int index, const Where& where) {
    const auto [it, added] = names_.try_emplace(name, index);
    if (added) return;
    if (it->second < 0) {
      broken("model.inputs." + name, "a node has the same name");
      return;
    }
    const Where& first = configs_[static_cast<std::size_t>(it->second)].name_where;
    diagnostics_.error(
        where, fmt::format("duplicate name '{}'", name), "first at " + place_of(first));
  }

  static std::string place_of(Where where) {
    if (where.line > 0) where.path.clear();
    return to_string(where);
  }

  /// The keys of a layer that name its sources.
  static std::span<const std::string_view> source_keys(const LayerConfig& w) {
    const bool takes_states = w.def != nullptr && w.def->traits.max_states > 0;
    return std::span(config::k_source_keys).first(takes_states ? 2 : 1);
  }

  void read_sources(LayerConfig& w) {
    const config::Node* from = w.node->find("from");
    if (from == nullptr || (from->kind == config::Node::Kind::sequence && from->items.empty())) {
      diagnostics_.error(from == nullptr ? w.where : from->where,
                         fmt::format("node '{}' needs 'from': the node or input it takes", w.name));
    }
    for (const std::string_view key : source_keys(w)) {
      const config::Node* names = w.node->find(key);
      if (names == nullptr) continue;
      // A value that is no word is an error of the reader of that field.
      const auto look_up_word = [&](const config::Node& word) {
        if (word.kind == config::Node::Kind::scalar) look_up(word.text, word.where, w.from);
      };
      look_up_word(*names);
      for (const config::Node& item : names->items) look_up_word(item);
    }
  }

  /// Appends the output that `text`, a name or name:i, means.
  void look_up(const std::string& text, const Where& where, std::vector<Reference>& found) {
    const std::size_t colon = text.find(':');
    const std::string name = text.substr(0, colon);
    const auto it = names_.find(name);
    if (it == names_.end()) {
      std::vector<std::string> known;
      known.reserve(names_.size());
      for (const auto& [known_name, index] : names_) known.push_back(known_name);
      diagnostics_.error(
          where, fmt::format("no node or input is called '{}'", name), did_you_mean(name, known));
      return;
    }
    Source source{it->second};
    if (colon != std::string::npos) {
      const auto number =
          config::to_integer(config::Node::scalar(text.substr(colon + 1), where)).value;
      if (!number || *number < 0) {
        diagnostics_.error(where,
                           fmt::format("'{}' names no output", text),
                           fmt::format("the outputs of '{0}' are {0}:0, {0}:1, ...", name));
        return;
      }
      source.output = static_cast<std::size_t>(*number);
    }
    found.push_back({source, text, where});
  }

  void read_output(std::size_t i) {
    const std::string& name = spec_.model.outputs[i];
    Where where = spec_.where(fmt::format("model.outputs[{}]", i));
    if (where.line == 0) where = spec_.where("model.outputs");
    std::vector<Reference> found;
    look_up(name, where, found);
    if (found.empty()) return;
    if (found[0].source.node < 0) {
      diagnostics_.error(where, fmt::format("'{}' is an input, not a node", name));
    } else if (std::ranges::any_of(outputs_, [&](const Reference& other) {
                 return other.source == found[0].source;
               })) {
      diagnostics_.error(where, fmt::format("'{}' is an output already", name));
    } else {
      outputs_.push_back(std::move(found[0]));
    }
  }

  /// The nodes of references.
  static std::vector<int> nodes_of(const std::vector<Reference>& references) {
    return mapped<int>(references,
                       [](const Reference& reference) { return reference.source.node; });
  }

  /// Checks numbers of inputs, cycles and nodes without effect on an output, then orders the nodes.
  void finish_structure() {
    const std::size_t before = diagnostics_.problems().size();
    SourceNodes sources;
    for (const LayerConfig& w : configs_) {
      check_input_count(w);
      sources.push_back(nodes_of(w.from));
    }
    const ModelOrder ordered = order_of(sources);
    if (!ordered.cycle.empty()) {
      report_cycle(ordered.cycle);
      return;
    }
    if (outputs_.empty()) {
      diagnostics_.error(spec_.where("model.outputs"), "must name at least one node");
      return;
    }
    report_unused(sources);
    if (diagnostics_.problems().size() == before) order_ = ordered.order;
  }

  void check_input_count(const LayerConfig& w) {
    const LayerTraits& traits = w.def->traits;
    const std::size_t count = w.from.size();
    if (count >= traits.min_inputs && count <= traits.max_inputs + traits.max_states) return;
    diagnostics_.error(
        w.node->find("from") != nullptr ? where_of(w, "from") : w.where,
        fmt::format("{} '{}' takes {}, got {}", w.def->type, w.name, input_count(traits), count));
  }

  void report_cycle(const std::vector<int>& cycle) {
    // `cycle` lists each node before the one it reads, so data flows in the reverse order.
    std::string text = configs_[static_cast<std::size_t>(cycle.front())].name;
    for (auto it = cycle.rbegin(); it != cycle.rend(); ++it) {
      text += " -> " + configs_[static_cast<std::size_t>(*it)].name;
    }
    diagnostics_.error(configs_[static_cast<std::size_t>(cycle.front())].where,
                       fmt::format("the nodes form a cycle: {}", text));
  }

  void report_unused(const SourceNodes& sources) {
    const std::vector<bool> reached = reaches(sources, nodes_of(outputs_));
    std::vector<bool> input_used(model_.inputs.size(), false);
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      for (const int source : sources[i]) {
        if (source < 0) input_used[static_cast<std::size_t>(-1 - source)] = true;
      }
      if (reached[i]) continue;
      diagnostics_.error(configs_[i].name_where,
                         fmt::format("node '{}' does not lead to an output", configs_[i].name),
                         "list it in `outputs` or remove it");
    }
    for (std::size_t i = 0; i < input_used.size(); ++i) {
      if (input_used[i]) continue;
      diagnostics_.error(spec_.where("model.inputs." + model_.inputs[i].name),
                         fmt::format("no node uses the input '{}'", model_.inputs[i].name));
    }
  }

  /// Reads the fields and the policy of every layer, and builds the nodes if the order is known.
  void add_layers() {
    LayerPolicies policies(spec_, diagnostics_);
    std::vector<ModelNode> nodes(configs_.size());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < configs_.size(); ++i) {
      const LayerConfig& w = configs_[i];
      ModelNode& node = nodes[i];
      if (w.def != nullptr) {
        node.layer = w.def->make(*w.node, diagnostics_);
        node.masks = w.def->masks;
      }
      node.name = w.name;
      node.type = w.common.type;
      node.where = w.where;
      node.trainable = w.common.trainable;
      node.activity_regularizer = w.common.activity_regularizer;
      node.precision = policies.resolve(w.name, w.common.dtype, where_of(w, "dtype"));
      names.push_back(w.name);
    }
    policies.finish(names);
    model_.warnings = policies.take_warnings();
    model_.sync_batch_norm = spec_.parallel.sync_batch_norm;
    std::vector<int> position_in_order(configs_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      position_in_order[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
    }
    // The node of a reference is before its users in the order.
    const auto resolved = [&](const Reference& reference) {
      Source source = reference.source;
      if (source.node >= 0) source.node = position_in_order[static_cast<std::size_t>(source.node)];
      check_output(reference, source);
      return source;
    };
    for (const int i : order_) {
      const LayerConfig& w = configs_[static_cast<std::size_t>(i)];
      ModelNode& node = nodes[static_cast<std::size_t>(i)];
      check_state_count(w, node);
      for (const Reference& reference : w.from) node.from.push_back(resolved(reference));
      model_.nodes.push_back(std::move(node));
    }
    if (order_.empty()) return;
    for (const Reference& reference : outputs_) model_.outputs.push_back(resolved(reference));
  }

  /// An error where the node has no such output. Layers with errors of their own are not checked.
  void check_output(const Reference& reference, const Source& source) {
    const Layer* layer =
        source.node < 0 ? nullptr : model_.nodes[static_cast<std::size_t>(source.node)].layer.get();
    const std::size_t outputs = layer == nullptr ? 1 : layer->outputs();
    if (source.output < outputs || (source.node >= 0 && layer == nullptr)) return;
    const bool stateless = layer != nullptr && outputs == 1 && layer->states() > 0;
    diagnostics_.error(
        reference.where,
        fmt::format("'{}' does not exist: '{}' has {}",
                    reference.text,
                    reference.text.substr(0, reference.text.find(':')),
                    outputs == 1 ? "one output" : fmt::format("outputs 0 to {}", outputs - 1)),
        stateless ? "return_state: true makes its states outputs" : "");
  }

  void check_state_count(const LayerConfig& w, const ModelNode& node) {
    if (w.def == nullptr || node.layer == nullptr || w.def->traits.max_states == 0) return;
    const std::size_t count = w.from.size() - 1, expected = node.layer->states();
    if (count == 0 || count == expected || expected == 0) return;
    const bool named = w.node->find("initial_state") != nullptr;
    diagnostics_.error(where_of(w, named ? "initial_state" : "from"),
                       fmt::format("{} '{}' takes {} initial state{}, got {}",
                                   node.type,
                                   w.name,
                                   expected,
                                   expected == 1 ? "" : "s",
                                   count));
  }

  Where where_of(const LayerConfig& w, std::string_view key) const {
    const config::Node* value = w.node->find(key);
    return value == nullptr ? w.where : value->where;
  }

  const config::RunSpec& spec_;
  Diagnostics& diagnostics_;
  Model model_;
  std::vector<LayerConfig> configs_;
  std::map<std::string, int> names_;
  std::vector<Reference> outputs_;
  std::vector<int> order_;  ///< empty after an error
  const bool first_ = diagnostics_.empty();
  bool broken_ = false;
};

}  // namespace

Model read_model(const config::RunSpec& spec, Diagnostics& diagnostics) {
  return ModelReader(spec, diagnostics).read();
}

}  // namespace halfstep::nn

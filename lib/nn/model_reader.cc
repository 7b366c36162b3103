// read_model(): the `model` section, with every problem reported at its position.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "config/reader.h"
#include "config/scalar.h"
#include "core/error.h"
#include "nn/layer_policies.h"
#include "nn/layers/table.h"
#include "nn/model.h"

namespace halfstep::nn {
namespace {

enum class Mark : char { fresh, open, done };

/// A node on the path of the depth-first search and the index of its next source.
struct Step {
  int node;
  std::size_t next = 0;
};

/// For each node its source nodes; negative numbers (inputs of the model) are ignored.
using Sources = std::vector<std::vector<int>>;

struct ModelOrder {
  std::vector<int> order;  ///< topological; otherwise in the order of the config
  std::vector<int> cycle;  ///< the nodes of a cycle, each reading the next; empty without one
};

ModelOrder order_of(const Sources& sources) {
  ModelOrder result;
  std::vector<Mark> marks(sources.size(), Mark::fresh);
  for (std::size_t start = 0; start < sources.size(); ++start) {
    if (marks[start] != Mark::fresh) continue;
    std::vector<Step> path{{static_cast<int>(start)}};
    marks[start] = Mark::open;
    while (!path.empty()) {
      Step& step = path.back();
      const std::vector<int>& taken = sources[static_cast<std::size_t>(step.node)];
      if (step.next == taken.size()) {
        marks[static_cast<std::size_t>(step.node)] = Mark::done;
        result.order.push_back(step.node);
        path.pop_back();
        continue;
      }
      const int source = taken[step.next++];
      if (source < 0) continue;
      Mark& mark = marks[static_cast<std::size_t>(source)];
      if (mark == Mark::open) {
        std::size_t first = 0;
        while (path[first].node != source) ++first;
        for (; first < path.size(); ++first) result.cycle.push_back(path[first].node);
        return result;
      }
      if (mark == Mark::fresh) {
        mark = Mark::open;
        path.push_back({source});
      }
    }
  }
  return result;
}

/// The nodes that one of `outputs` depends on.
std::vector<bool> reaches(const Sources& sources, std::span<const int> outputs) {
  std::vector<bool> reached(sources.size(), false);
  std::vector<int> open(outputs.begin(), outputs.end());
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (node < 0 || reached[static_cast<std::size_t>(node)]) continue;
    reached[static_cast<std::size_t>(node)] = true;
    const std::vector<int>& taken = sources[static_cast<std::size_t>(node)];
    open.insert(open.end(), taken.begin(), taken.end());
  }
  return reached;
}

/// A layer as written in the config, before its inputs and policy are resolved.
struct Written {
  const config::Node* node = nullptr;
  const LayerDef* def = nullptr;
  LayerCommon common;
  std::string name;
  Where where;       ///< of the layer
  Where name_where;  ///< of its name, or of the layer when it has none
};

bool is_name(std::string_view text) {
  const auto word = [](char ch) {
    return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
           ch == '_';
  };
  const auto inner = [&](char ch) { return word(ch) || ch == '-' || ch == '.'; };
  return !text.empty() && word(text.front()) && std::all_of(text.begin(), text.end(), inner);
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
    for (int i = 0; i < static_cast<int>(written_.size()); ++i) {
      const Written& w = written_[static_cast<std::size_t>(i)];
      if (w.node->find("from") != nullptr) {
        diagnostics_.error(place(w, "from"),
                           "'from' belongs to a graph of nodes; a layer takes the one before it",
                           "give `inputs`, `nodes` and `outputs` instead of `layers`");
      }
      sources_.push_back({i - 1});
    }
    outputs_.push_back(static_cast<int>(written_.size()) - 1);
  }

  void read_graph() {
    const config::ModelSpec& m = spec_.model;
    for (const config::NamedExtents& input : m.inputs) {
      add_input(input.name, input.extents, "model.inputs." + input.name);
    }
    if (m.nodes.kind != config::Node::Kind::map || m.nodes.entries.empty()) {
      broken("model.nodes", "must be a map of at least one node");
      return;
    }
    for (const config::Node::Entry& entry : m.nodes.entries) {
      read_layer(entry.value, entry.key);
      written_.back().name_where = entry.where;
    }
    for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
      enter(model_.inputs[i].name, -1 - static_cast<int>(i), spec_.where("model.inputs"));
    }
    for (std::size_t i = 0; i < written_.size(); ++i) {
      enter(written_[i].name, static_cast<int>(i), written_[i].name_where);
    }
    for (const Written& w : written_) sources_.push_back(sources_of(w));
    for (std::size_t i = 0; i < m.outputs.size(); ++i) read_output(i);
  }

  void add_input(std::string name, const std::vector<std::int64_t>& extents, std::string_view at) {
    const bool positive = std::all_of(
        extents.begin(), extents.end(), [](std::int64_t extent) { return extent >= 1; });
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
    Written w;
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
    if (w.common.name && key.empty()) w.name_where = place(w, "name");
    if (w.common.name && !key.empty() && *w.common.name != key) {
      diagnostics_.error(place(w, "name"),
                         fmt::format("the name of a node is its key, '{}'", key),
                         "leave out 'name'");
    }
    if ((w.common.name || !key.empty()) && !is_name(w.name)) refuse_name(w.name, w.name_where);
    if (!w.common.type.empty()) {
      w.def = find_layer(w.common.type, place(w, "type"), diagnostics_);
    }
    written_.push_back(std::move(w));
  }

  void refuse_name(std::string_view name, const Where& where) {
    diagnostics_.error(where,
                       fmt::format("'{}' is not a name", name),
                       "letters, digits, '_', '-' and '.', starting with a letter, digit or '_'");
  }

  /// Keras's names for unnamed layers: dense, dense_1, ...
  void name_layers() {
    for (std::size_t i = 0; i < written_.size(); ++i) {
      if (!written_[i].name.empty()) {
        enter(written_[i].name, static_cast<int>(i), written_[i].name_where);
      }
    }
    std::map<std::string, int> count;
    for (std::size_t i = 0; i < written_.size(); ++i) {
      Written& w = written_[i];
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
    const Where& first = written_[static_cast<std::size_t>(it->second)].name_where;
    diagnostics_.error(
        where, fmt::format("duplicate name '{}'", name), "first at " + place_of(first));
  }

  static std::string place_of(Where where) {
    if (where.line > 0) where.path.clear();
    return to_string(where);
  }

  std::vector<int> sources_of(const Written& w) {
    std::vector<int> sources;
    const config::Node* from = w.node->find("from");
    if (from == nullptr || (from->kind == config::Node::Kind::sequence && from->items.empty())) {
      diagnostics_.error(from == nullptr ? w.where : from->where,
                         fmt::format("node '{}' needs 'from': the node or input it takes", w.name));
    }
    for (std::size_t i = 0; i < w.common.from.size(); ++i) {
      const bool list = from->kind == config::Node::Kind::sequence && i < from->items.size();
      look_up(w.common.from[i], list ? from->items[i].where : from->where, sources);
    }
    return sources;
  }

  void look_up(const std::string& name, const Where& where, std::vector<int>& found) {
    const auto it = names_.find(name);
    if (it != names_.end()) {
      found.push_back(it->second);
      return;
    }
    std::vector<std::string> known;
    known.reserve(names_.size());
    for (const auto& [known_name, index] : names_) known.push_back(known_name);
    diagnostics_.error(
        where, fmt::format("no node or input is called '{}'", name), did_you_mean(name, known));
  }

  void read_output(std::size_t i) {
    const std::string& name = spec_.model.outputs[i];
    Where where = spec_.where(fmt::format("model.outputs[{}]", i));
    if (where.line == 0) where = spec_.where("model.outputs");
    std::vector<int> found;
    look_up(name, where, found);
    if (found.empty()) return;
    if (found[0] < 0) {
      diagnostics_.error(where, fmt::format("'{}' is an input, not a node", name));
    } else if (std::find(outputs_.begin(), outputs_.end(), found[0]) != outputs_.end()) {
      diagnostics_.error(where, fmt::format("'{}' is an output already", name));
    } else {
      outputs_.push_back(found[0]);
    }
  }

  /// Checks numbers of inputs, cycles and nodes without effect on an output, then orders the nodes.
  void finish_structure() {
    const std::size_t before = diagnostics_.problems().size();
    for (std::size_t i = 0; i < written_.size(); ++i) check_input_count(i);
    const ModelOrder ordered = order_of(sources_);
    if (!ordered.cycle.empty()) {
      report_cycle(ordered.cycle);
      return;
    }
    if (outputs_.empty()) {
      diagnostics_.error(spec_.where("model.outputs"), "must name at least one node");
      return;
    }
    report_unused();
    if (diagnostics_.problems().size() == before) order_ = ordered.order;
  }

  void check_input_count(std::size_t i) {
    const Written& w = written_[i];
    const LayerTraits& traits = w.def->traits;
    const std::size_t given = sources_[i].size();
    if (given >= traits.min_inputs && given <= traits.max_inputs) return;
    const std::string wanted = traits.max_inputs == traits.min_inputs
                                   ? fmt::format("{}", traits.min_inputs)
                                   : fmt::format("{} or more", traits.min_inputs);
    diagnostics_.error(w.node->find("from") != nullptr ? place(w, "from") : w.where,
                       fmt::format("{} '{}' takes {} input{}, got {}",
                                   w.def->type,
                                   w.name,
                                   wanted,
                                   wanted == "1" ? "" : "s",
                                   given));
  }

  void report_cycle(const std::vector<int>& cycle) {
    // `cycle` lists each node before the one it reads, so data flows in the reverse order.
    std::string text = written_[static_cast<std::size_t>(cycle.front())].name;
    for (auto it = cycle.rbegin(); it != cycle.rend(); ++it) {
      text += " -> " + written_[static_cast<std::size_t>(*it)].name;
    }
    diagnostics_.error(written_[static_cast<std::size_t>(cycle.front())].where,
                       fmt::format("the nodes form a cycle: {}", text));
  }

  void report_unused() {
    const std::vector<bool> reached = reaches(sources_, outputs_);
    std::vector<bool> input_used(model_.inputs.size(), false);
    for (std::size_t i = 0; i < written_.size(); ++i) {
      for (const int source : sources_[i]) {
        if (source < 0) input_used[static_cast<std::size_t>(-1 - source)] = true;
      }
      if (reached[i]) continue;
      diagnostics_.error(written_[i].name_where,
                         fmt::format("node '{}' leads to no output", written_[i].name),
                         "name it in `outputs` or take it out");
    }
    for (std::size_t i = 0; i < input_used.size(); ++i) {
      if (input_used[i]) continue;
      diagnostics_.error(spec_.where("model.inputs." + model_.inputs[i].name),
                         fmt::format("no node takes the input '{}'", model_.inputs[i].name));
    }
  }

  /// Reads the fields and the policy of every layer, and builds the nodes if the order is known.
  void add_layers() {
    LayerPolicies policies(spec_, diagnostics_);
    std::vector<ModelNode> nodes(written_.size());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < written_.size(); ++i) {
      const Written& w = written_[i];
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
      node.precision = policies.resolve(w.name, w.common.dtype, place(w, "dtype"));
      names.push_back(w.name);
    }
    policies.finish(names);
    model_.warnings = policies.take_warnings();
    model_.sync_batch_norm = spec_.parallel.sync_batch_norm;
    std::vector<int> place_in_order(written_.size());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      place_in_order[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
    }
    const auto renumbered = [&](int index) {
      return index < 0 ? index : place_in_order[static_cast<std::size_t>(index)];
    };
    for (const int i : order_) {
      ModelNode& node = nodes[static_cast<std::size_t>(i)];
      for (const int source : sources_[static_cast<std::size_t>(i)]) {
        node.from.push_back(renumbered(source));
      }
      model_.nodes.push_back(std::move(node));
    }
    if (order_.empty()) return;
    for (const int output : outputs_) model_.outputs.push_back(renumbered(output));
  }

  Where place(const Written& w, std::string_view key) const {
    const config::Node* value = w.node->find(key);
    return value == nullptr ? w.where : value->where;
  }

  const config::RunSpec& spec_;
  Diagnostics& diagnostics_;
  Model model_;
  std::vector<Written> written_;
  std::map<std::string, int> names_;
  Sources sources_;
  std::vector<int> outputs_;
  std::vector<int> order_;  ///< empty after an error
  const bool first_ = diagnostics_.empty();
  bool broken_ = false;
};

}  // namespace

Model read_model(const config::RunSpec& spec, Diagnostics& diagnostics) {
  return ModelReader(spec, diagnostics).read();
}

}  // namespace halfstep::nn

#include "config/blocks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "config/scalar.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

using Kind = Node::Kind;
using Names = std::vector<std::string>;

constexpr std::int64_t k_max_times = 1000;
constexpr std::size_t k_max_nodes = 20'000;

/// A block as written.
struct Block {
  const Node* nodes = nullptr;
  const Node* parameters = nullptr;  ///< may be absent
  Names inputs{"input"};
  std::string output;

  Names parameter_names() const {
    if (parameters == nullptr) return {};
    return mapped<std::string>(parameters->entries, &Node::Entry::key);
  }
};

/// The names and parameters that the nodes of a use see.
struct Scope {
  std::map<std::string, std::string, std::less<>> names;   ///< to those of the whole model
  std::map<std::string, const Node*, std::less<>> values;  ///< of parameters
  std::string prefix;                                      ///< of the names of its nodes
  bool top = false;  ///< the model's own nodes, whose other names are inputs of the model
};

class Expander {
 public:
  Expander(const Node& blocks, Diagnostics& diagnostics) : diagnostics_(diagnostics) {
    for (const Node::Entry& entry : blocks.entries) read(entry);
  }

  void expand(Node& root, Node& model) {
    Node* nodes = model.find("nodes");
    if (nodes == nullptr || nodes->kind != Kind::map) return;
    const Node written = *nodes;
    Scope top;
    top.top = true;
    nodes->entries = expand_nodes(written, std::move(top));
    const Scope whole = scope_of(written, {}, true);
    if (Node* outputs = model.find("outputs")) rename(*outputs, whole);
    for (const char* key : {"loss", "loss_weights", "metrics"}) {
      Node* by_output = root.find(key);
      if (by_output == nullptr || by_output->find("type") != nullptr) continue;
      for (Node::Entry& entry : by_output->entries) {
        Node name = Node::scalar(entry.key);
        rename(name, whole);
        entry.key = name.text;
      }
    }
    for (const auto& [name, block] : blocks_) {
      if (used_.count(name) == 0 && !unknown_) {
        diagnostics_.error(block.nodes->where, fmt::format("block '{}' is used by no node", name));
      }
    }
  }

 private:
  using Entries = std::vector<Node::Entry>;

  void read(const Node::Entry& entry) {
    const auto error = [&](const Node& at, std::string message) {
      diagnostics_.error(at.where, fmt::format("block '{}' {}", entry.key, message));
      broken_.insert(entry.key);
    };
    if (entry.value.kind != Kind::map) return error(entry.value, "must be a map with `nodes`");
    Block block;
    for (const Node::Entry& field : entry.value.entries) {
      if (field.key == "nodes") {
        block.nodes = &field.value;
      } else if (field.key == "parameters") {
        block.parameters = &field.value;
      } else if (field.key == "inputs") {
        block.inputs = scalar_texts(&field.value);
      } else if (field.key == "output") {
        block.output = field.value.text;
      } else {
        diagnostics_.error(field.where,
                           fmt::format("unknown key '{}' of a block", field.key),
                           choices(field.key, {"inputs", "nodes", "output", "parameters"}));
        broken_.insert(entry.key);
      }
    }
    if (block.nodes == nullptr || block.nodes->kind != Kind::map || block.nodes->entries.empty()) {
      return error(block.nodes == nullptr ? entry.value : *block.nodes,
                   "needs `nodes`, a map from names to layers");
    }
    if (block.parameters != nullptr && block.parameters->kind != Kind::map) {
      return error(*block.parameters, "has parameters that are not a map from names to values");
    }
    for (const std::string& name : block.parameter_names()) {
      if (name == "block" || name == "count" || name == "from") {
        return error(*block.parameters,
                     fmt::format("has a parameter with the reserved name '{}'", name));
      }
    }
    if (block.output.empty()) block.output = block.nodes->entries.back().key;
    if (block.nodes->find(block.output) == nullptr) {
      return error(entry.value, fmt::format("has no node '{}', its output", block.output));
    }
    for (const std::string& name : block.inputs) {
      if (block.nodes->find(name) == nullptr) continue;
      return error(*block.nodes->find(name),
                   fmt::format("has a node with the name '{}' of an input", name));
    }
    if (broken_.count(entry.key) == 0) blocks_[entry.key] = std::move(block);
  }

  const Block* block_of(const Node& use) const {
    const Node* name = use.find("block");
    const auto found = name == nullptr ? blocks_.end() : blocks_.find(name->text);
    return found == blocks_.end() ? nullptr : &found->second;
  }

  std::int64_t count_of(const Node& use) const {
    const Node* count = use.find("count");
    return count == nullptr ? 1 : to_integer(*count).value.value_or(1);
  }

  static std::string prefix_of(const std::string& name, std::int64_t time, std::int64_t count) {
    return count == 1 ? name + "." : fmt::format("{}.{}.", name, time);
  }

  /// The node that `from: name` means: `name` itself where it uses no block, or one that it is in.
  std::string output_of(const std::string& name, const Node& node) const {
    return output_of(name, node, open_);
  }

  /// `within`: the blocks that the node is in.
  std::string output_of(const std::string& name, const Node& node, Names within) const {
    const Block* block = block_of(node);
    if (block == nullptr || contains(within, node.find("block")->text)) return name;
    within.push_back(node.find("block")->text);
    const std::int64_t count = count_of(node);
    return output_of(prefix_of(name, count, count) + block->output,
                     *block->nodes->find(block->output),
                     std::move(within));
  }

  /// The names of `nodes`, for their users.
  Scope scope_of(const Node& nodes, const std::string& prefix, bool top) const {
    Scope scope;
    scope.prefix = prefix;
    scope.top = top;
    for (const Node::Entry& entry : nodes.entries) {
      scope.names[entry.key] = output_of(prefix + entry.key, entry.value);
    }
    return scope;
  }

  Entries expand_nodes(const Node& nodes, Scope scope) {
    scope.names.merge(scope_of(nodes, scope.prefix, scope.top).names);
    Entries all;
    for (const Node::Entry& entry : nodes.entries) {
      Node node = entry.value;
      substitute(node, scope);
      const bool uses_block = node.kind == Kind::map && node.find("block") != nullptr;
      for (const std::string_view key : k_source_keys) {
        Node* names = node.find(key);
        if (names != nullptr && (key == "from" || !uses_block)) rename(*names, scope);
      }
      const std::string name = scope.prefix + entry.key;
      if (!uses_block) {
        all.push_back({name, entry.where, std::move(node)});
        ++made_;
        continue;
      }
      Entries used = use(name, node);
      if (used.empty()) {
        // The nodes that read it find one, so that the problem is reported once.
        Entries linear{{"type", node.where, Node::scalar("linear", node.where)}};
        if (const Node* from = node.find("from")) linear.push_back({"from", from->where, *from});
        used.push_back(
            {output_of(name, entry.value), entry.where, Node::map(std::move(linear), node.where)});
      }
      std::move(used.begin(), used.end(), std::back_inserter(all));
    }
    return all;
  }

  /// The nodes of a use, or none and an error. Its parameters and `from` are those of the model.
  Entries use(const std::string& name, const Node& node) {
    const auto error = [&](const Node& at, std::string message, std::string hint = {}) {
      diagnostics_.error(at.where, std::move(message), std::move(hint));
      return Entries();
    };
    const Node& named = *node.find("block");
    const Block* block = block_of(node);
    if (broken_.count(named.text) != 0) return {};
    if (block == nullptr) {
      unknown_ = true;
      Names known;
      for (const auto& [each, unused] : blocks_) known.push_back(each);
      return error(
          named, fmt::format("unknown block '{}'", named.text), choices(named.text, known));
    }
    used_.insert(named.text);
    if (contains(open_, named.text)) {
      broken_.insert(named.text);
      return error(named,
                   fmt::format("block '{}' uses itself: {} -> {}",
                               named.text,
                               fmt::join(open_, " -> "),
                               named.text));
    }
    const Node* count = node.find("count");
    const std::int64_t times = count_of(node);
    if (count != nullptr && (!to_integer(*count).value || times < 1 || times > k_max_times)) {
      return error(
          *count,
          fmt::format(
              "must be a whole number from 1 to {}, got {}", k_max_times, describe(*count)));
    }
    const Names from = scalar_texts(node.find("from"));
    if (from.size() != block->inputs.size() || (times > 1 && from.size() != 1)) {
      return error(node,
                   fmt::format("block '{}' takes {} in `from`, got {}",
                               named.text,
                               times > 1 ? "one input when it is repeated"
                                         : fmt::format("{}", fmt::join(block->inputs, ", ")),
                               from.size()));
    }
    Scope scope;
    if (!bind(*block, node, scope)) return {};
    Entries all;
    open_.push_back(named.text);
    for (std::int64_t time = 1; time <= times && made_ <= k_max_nodes; ++time) {
      scope.prefix = prefix_of(name, time, times);
      scope.names.clear();
      for (std::size_t i = 0; i < from.size(); ++i) {
        scope.names[block->inputs[i]] =
            time == 1 ? from[i]
                      : output_of(prefix_of(name, time - 1, times) + block->output,
                                  *block->nodes->find(block->output));
      }
      Entries nodes = expand_nodes(*block->nodes, scope);
      std::move(nodes.begin(), nodes.end(), std::back_inserter(all));
    }
    open_.pop_back();
    if (made_ > k_max_nodes) {
      return error(node, fmt::format("blocks would give more than {} nodes", k_max_nodes));
    }
    return all;
  }

  /// The values of a block's parameters. False and errors where one is missing or unknown.
  bool bind(const Block& block, const Node& node, Scope& scope) {
    const Names known = block.parameter_names();
    bool bound = true;
    for (const Node::Entry& entry : node.entries) {
      if (entry.key == "block" || entry.key == "count" || entry.key == "from") continue;
      if (contains(known, entry.key)) {
        scope.values[entry.key] = &entry.value;
        continue;
      }
      diagnostics_.error(
          entry.where,
          fmt::format("block '{}' has no parameter '{}'", node.find("block")->text, entry.key),
          known.empty() ? "it has none" : choices(entry.key, known));
      bound = false;
    }
    for (const std::string& name : known) {
      const Node* default_value = block.parameters->find(name);
      if (!scope.values.try_emplace(name, default_value).second ||
          default_value->kind != Kind::null)
        continue;
      diagnostics_.error(
          node.where,
          fmt::format("block '{}' needs the parameter '{}'", node.find("block")->text, name));
      bound = false;
    }
    return bound;
  }

  /// Puts the values of parameters for `$name`.
  void substitute(Node& node, const Scope& scope) {
    for (Node& item : node.items) substitute(item, scope);
    for (Node::Entry& entry : node.entries) substitute(entry.value, scope);
    if (scope.top || node.kind != Kind::scalar || !node.text.starts_with('$')) return;
    const auto found = scope.values.find(std::string_view(node.text).substr(1));
    if (found != scope.values.end()) {
      node = Node(*found->second);
      return;
    }
    Names known;
    for (const auto& [name, value] : scope.values) known.push_back(name);
    diagnostics_.error(node.where,
                       fmt::format("the block has no parameter '{}'", node.text.substr(1)),
                       choices(node.text.substr(1), known));
  }

  /// Names of a scope to those of the model; `name:i` is output i of a node.
  void rename(Node& names, const Scope& scope) {
    for (Node& item : names.items) rename(item, scope);
    if (names.kind != Kind::scalar) return;
    const std::size_t end = std::min(names.text.find(':'), names.text.size());
    const auto found = scope.names.find(std::string_view(names.text).substr(0, end));
    if (found != scope.names.end()) {
      names.text.replace(0, end, found->second);
    } else if (!scope.top) {
      Names known;
      for (const auto& [name, value] : scope.names) known.push_back(name);
      diagnostics_.error(
          names.where,
          fmt::format("'{}' is neither an input nor a node of the block", names.text),
          choices(names.text, known));
    }
  }

  Diagnostics& diagnostics_;
  std::map<std::string, Block, std::less<>> blocks_;
  std::set<std::string, std::less<>> used_;
  std::set<std::string, std::less<>> broken_;  ///< blocks whose errors are reported
  bool unknown_ = false;  ///< whether a use names no block, perhaps one that seems not to be used
  Names open_;            ///< blocks whose nodes are being made
  std::size_t made_ = 0;  ///< nodes
};

}  // namespace

void expand_blocks(Node& root, Diagnostics& diagnostics) {
  Node* model = root.find("model");
  if (model == nullptr || model->kind != Kind::map) return;
  const auto at = std::ranges::find(model->entries, "blocks", &Node::Entry::key);
  if (at == model->entries.end() || at->value.kind == Kind::null) return;
  const Node::Entry blocks = *at;
  model->entries.erase(at);
  if (blocks.value.kind != Kind::map) {
    diagnostics.error(
        blocks.value.where,
        fmt::format("must be a map from names to blocks, got {}", describe(blocks.value)));
    return;
  }
  if (model->find("nodes") == nullptr) {
    diagnostics.error(blocks.where, "blocks are used by model.nodes, which is not there");
    return;
  }
  Expander(blocks.value, diagnostics).expand(root, *model);
}

}  // namespace halfstep::config

#include "passes/rewriter.h"

#include <algorithm>
#include <numeric>

#include "graph/ops/ops.h"

namespace halfstep::passes {

using graph::Node;
using graph::Value;

namespace {

int swaps_of(const Pattern& pattern) {
  return std::accumulate(pattern.operands.begin(),
                         pattern.operands.end(),
                         pattern.swaps ? 1 : 0,
                         [](int sum, const Pattern& p) { return sum + swaps_of(p); });
}

int or_root(int id, int root) { return id < 0 ? root : id; }

}  // namespace

Pattern Pattern::as(Value& value) const {
  Pattern pattern = *this;
  pattern.capture = &value;
  return pattern;
}

Pattern Pattern::used_once() const {
  Pattern pattern = *this;
  pattern.once = true;
  return pattern;
}

Pattern Pattern::commutes() const {
  Pattern pattern = *this;
  pattern.swaps = true;
  return pattern;
}

Pattern Pattern::where(std::function<bool(const Node&)> test) const {
  Pattern pattern = *this;
  pattern.accepts = std::move(test);
  return pattern;
}

Pattern op(graph::OpHandle op, std::vector<Pattern> operands) {
  return {.ops = {op}, .operands = std::move(operands)};
}

Pattern any(Value& value) { return {.ops = {}, .capture = &value}; }

Pattern same(const Value& value) { return {.ops = {}, .equal = &value}; }

bool is_nhwc(const Node& node) { return node.attrs.get<std::string>("data_format") == "NHWC"; }

bool is_float_or_half(const Node& node) {
  const DType dtype = node.outputs[0].dtype;
  return dtype == DType::float32 || is_half(dtype);
}

bool is_elementwise(const Node& node) { return graph::ops::elementwise_operands(node.op) > 0; }

std::vector<NewNode::Result> first_outputs(int node, std::size_t count) {
  std::vector<NewNode::Result> results;
  for (int port = 0; port < static_cast<int>(count); ++port)
    results.push_back({{node, port}, port});
  return results;
}

Rewriter::Rewriter(const graph::Graph& graph, KernelSupport supports)
    : graph_(graph),
      supports_(std::move(supports)),
      removed_(static_cast<std::size_t>(graph.size()), false),
      ordered_(removed_.size(), false) {
  for (int id = 0; id < graph.size(); ++id) {
    position_.emplace_back(id, 0);
    for (const Value& input : graph.node(id).inputs) users_[input].push_back(id);
    for (const int control : graph.node(id).control) {
      ordered_[static_cast<std::size_t>(control)] = ordered_[static_cast<std::size_t>(id)] = true;
    }
  }
  for (const auto& [name, value] : graph.fetches()) users_[value].push_back(-1);
}

const std::vector<int>& Rewriter::users(Value value) const {
  static const std::vector<int> k_none;
  const auto it = users_.find(value);
  return it == users_.end() ? k_none : it->second;
}

Value Rewriter::user(Value value, graph::OpHandle op) const {
  for (const int user : users(value)) {
    if (user >= 0 && graph_.node(user).is(op)) return {user, 0};
  }
  return {};
}

bool Rewriter::before(int a, int b) const {
  if (a < 0 || b < 0) return a > b;
  return position_[static_cast<std::size_t>(a)] < position_[static_cast<std::size_t>(b)];
}

Value Rewriter::current(Value value) const {
  for (auto it = replaced_.find(value); it != replaced_.end(); it = replaced_.find(value)) {
    value = it->second;
  }
  return value;
}

std::vector<int> Rewriter::order() const {
  std::vector<int> ids;
  for (int id = 0; id < graph_.size(); ++id) {
    if (!removed_[static_cast<std::size_t>(id)]) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end(), [&](int a, int b) { return before(a, b); });
  // A node that replaced another one may be behind a reader that was added at the same position.
  std::vector<int> ordered;
  std::vector<bool> done(static_cast<std::size_t>(graph_.size()), false);
  const std::function<void(int)> append = [&](int id) {
    if (done[static_cast<std::size_t>(id)] || removed_[static_cast<std::size_t>(id)]) return;
    done[static_cast<std::size_t>(id)] = true;
    for (const Value& input : graph_.node(id).inputs) {
      if (position(input.node) == position(id)) append(input.node);
    }
    ordered.push_back(id);
  };
  for (const int id : ids) append(id);
  return ordered;
}

bool Rewriter::match(const Pattern& pattern,
                     Value value,
                     unsigned& swaps,
                     std::vector<int>& matched) const {
  if (pattern.equal != nullptr && *pattern.equal != value) return false;
  if (pattern.once && (users(value).size() != 1 || users(value)[0] < 0)) return false;
  if (pattern.capture != nullptr) *pattern.capture = value;
  if (pattern.ops.empty()) return true;
  const Node& node = graph_.node(value.node);
  if (value.port != 0 || node.inputs.size() < pattern.operands.size() ||
      has_control_edge(value.node) ||
      std::none_of(pattern.ops.begin(), pattern.ops.end(), [&](auto op) { return node.is(op); }) ||
      (pattern.accepts && !pattern.accepts(node))) {
    return false;
  }
  matched.push_back(value.node);
  const std::size_t flip = pattern.swaps ? swaps & 1U : 0U;
  if (pattern.swaps) swaps >>= 1U;
  for (std::size_t i = 0; i < pattern.operands.size(); ++i) {
    if (!match(pattern.operands[i], node.inputs[i ^ flip], swaps, matched)) return false;
  }
  return true;
}

void Rewriter::apply(const Pattern& pattern, const std::function<Replacement()>& replacement) {
  const unsigned orders = 1U << static_cast<unsigned>(swaps_of(pattern));
  for (const int id : order()) {
    if (removed_[static_cast<std::size_t>(id)]) continue;
    for (unsigned swapped = 0; swapped < orders; ++swapped) {
      std::vector<int> matched;
      unsigned swaps = swapped;
      if (!match(pattern, {id, 0}, swaps, matched)) continue;
      const Replacement nodes = replacement();
      if (nodes.empty() || add(nodes, id) < 0) continue;
      for (const int node : matched) remove_unused(node);
      break;
    }
  }
}

std::optional<std::vector<graph::OpInstance>> Rewriter::describe(const Replacement& nodes) const {
  std::vector<graph::OpInstance> ops;
  ops.reserve(nodes.size());  // inputs point to nodes before them
  for (const NewNode& node : nodes) {
    std::vector<graph::OpInput> inputs;
    std::vector<Value> values;
    for (const Value& value : node.inputs) {
      values.push_back(value.node >= 0 ? current(value) : value);
      if (value.node >= 0) {
        inputs.push_back(graph_.input(values.back()));
      } else {
        const Node& other = ops[static_cast<std::size_t>(-2 - value.node)].node;
        inputs.push_back({other.outputs[static_cast<std::size_t>(value.port)], &other});
      }
    }
    ops.push_back(graph::describe(graph::op_table(), node.op, std::move(inputs), node.attrs));
    ops.back().node.inputs = std::move(values);
    const bool computed = !ops.back().node.is(graph::ops::k_const);
    if (computed && supports_ && !supports_(ops.back())) return std::nullopt;
  }
  return ops;
}

int Rewriter::add(const Replacement& nodes, int root) {
  auto ops = describe(nodes);
  if (!ops) return -1;
  const int first = graph_.size();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node& node = (*ops)[i].node;
    for (Value& value : node.inputs) {
      if (value.node < 0) value.node = first - 2 - value.node;
    }
    node.origin = graph_.node(or_root(nodes[i].origin, root)).origin;
    if (!nodes[i].name.empty()) {
      node.name = graph_.unique_name(nodes[i].name);
    } else {
      const int named = or_root(nodes[i].named, root);
      node.name = graph_.node(named).name;
      graph_.rename(named, graph_.unique_name(node.name));
    }
    const int id = graph_.add(std::move(node));
    position_.emplace_back();
    move(id, position(or_root(nodes[i].at, root)));
    removed_.push_back(false);
    ordered_.push_back(false);
    for (const Value& input : graph_.node(id).inputs) {
      std::vector<int>& users = users_[input];
      users.insert(std::upper_bound(
                       users.begin(), users.end(), id, [&](int a, int b) { return before(a, b); }),
                   id);
    }
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const NewNode::Result& result : nodes[i].results) {
      replace(result.old, {first + static_cast<int>(i), result.port});
    }
  }
  for (const NewNode& node : nodes) {
    for (const NewNode::Result& result : node.results) remove_unused(result.old.node);
  }
  return first;
}

void Rewriter::move(int id, int position) {
  position_[static_cast<std::size_t>(id)] = {position, ++moved_};
}

void Rewriter::replace(Value old, Value now) {
  std::vector<int> moved = std::move(users_[old]);
  users_.erase(old);
  for (const int user : moved) {
    if (user < 0) continue;
    std::vector<Value>& inputs = graph_.node(user).inputs;
    std::replace(inputs.begin(), inputs.end(), old, now);
  }
  for (auto& [name, value] : graph_.fetches()) {
    if (value == old) value = now;
  }
  std::vector<int>& users = users_[now];
  users.insert(users.end(), moved.begin(), moved.end());
  std::sort(users.begin(), users.end(), [&](int a, int b) { return before(a, b); });
  replaced_[old] = now;
}

void Rewriter::remove(int id) {
  removed_[static_cast<std::size_t>(id)] = true;
  for (const Value& input : graph_.node(id).inputs) std::erase(users_[input], id);
}

void Rewriter::remove_unused(int id) {
  if (removed_[static_cast<std::size_t>(id)]) return;
  for (int port = 0; port < static_cast<int>(graph_.node(id).outputs.size()); ++port) {
    if (!users({id, port}).empty()) return;
  }
  remove(id);
}

graph::Graph Rewriter::finish() const { return select(graph_, order()); }

Writers::Writers(const graph::Graph& graph, const std::function<bool(int)>& is_update) {
  for (int id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.is(graph::ops::k_read_variable_op, graph::ops::k_packed_variable)) continue;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (graph.type(node.inputs[i]).dtype != DType::resource) continue;
      const auto [it, first] =
          by_handle_.emplace(node.inputs[i], i == 0 && is_update(id) ? id : -1);
      if (!first) it->second = -1;
    }
  }
}

bool Writers::allow_copy(Value handle, const std::function<bool(int)>& comes_later) const {
  const auto it = by_handle_.find(handle);
  return it == by_handle_.end() || (it->second >= 0 && comes_later(it->second));
}

graph::Graph select(const graph::Graph& graph, const std::vector<int>& nodes) {
  graph::Graph selected;
  std::vector<int> now(static_cast<std::size_t>(graph.size()), -1);
  for (const int id : nodes) {
    Node node = graph.node(id);
    for (Value& input : node.inputs) {
      input.node = now[static_cast<std::size_t>(input.node)];
      require(input.node >= 0, "an input of {} is not in the selected graph", node.name);
    }
    for (int& control : node.control) control = now[static_cast<std::size_t>(control)];
    std::erase(node.control, -1);
    now[static_cast<std::size_t>(id)] = selected.add(std::move(node));
  }
  selected.variables() = graph.variables();
  for (const auto& [name, value] : graph.fetches()) {
    selected.fetches().push_back({name, {now[static_cast<std::size_t>(value.node)], value.port}});
  }
  return selected;
}

namespace {

graph::Graph with_inputs(const graph::Graph& graph, const std::function<bool(const Node&)>& keep) {
  std::vector<bool> live(static_cast<std::size_t>(graph.size()), false);
  for (const auto& [name, value] : graph.fetches())
    live[static_cast<std::size_t>(value.node)] = true;
  std::vector<int> nodes;
  for (int id = graph.size() - 1; id >= 0; --id) {
    const Node& node = graph.node(id);
    if (keep(node)) live[static_cast<std::size_t>(id)] = true;
    if (!live[static_cast<std::size_t>(id)]) continue;
    nodes.push_back(id);
    for (const Value& input : node.inputs) live[static_cast<std::size_t>(input.node)] = true;
    for (int control : node.control) live[static_cast<std::size_t>(control)] = true;
  }
  std::reverse(nodes.begin(), nodes.end());
  return select(graph, nodes);
}

}  // namespace

graph::Graph prune(const graph::Graph& graph) {
  return with_inputs(graph, [](const Node& node) { return node.outputs.empty() || node.preserve; });
}

graph::Graph prune_to(graph::Graph graph, graph::OpHandle op) {
  graph.fetches().clear();
  return with_inputs(graph, [&](const Node& node) { return node.is(op); });
}

}  // namespace halfstep::passes

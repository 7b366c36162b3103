#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Node;
using graph::Value;

constexpr graph::OpHandle k_square{"Square"};

/// The x of a Sum(Square(x)) over all elements in float32, of which nothing else reads the squares.
std::optional<Value> squared(const Rewriter& rewriter, int id) {
  const Node& sum = rewriter.graph().node(id);
  if (!sum.is(graph::ops::k_sum) || sum.outputs[0] != graph::TensorType{DType::float32, {}} ||
      rewriter.has_control_edge(id)) {
    return std::nullopt;
  }
  const Value squares = sum.inputs[0];
  const Node& square = rewriter.node(squares);
  if (!square.is(k_square) || rewriter.users(squares).size() != 1) return std::nullopt;
  return square.inputs[0];
}

/// Whether the memory of a value keeps its contents until the node `last` has run: an update of the
/// variable that it is read from comes later.
bool keeps_until(const Rewriter& rewriter, Value value, int last) {
  for (;;) {
    const Node& node = rewriter.node(value);
    if (node.inputs.empty() || !node.def->aliases) {
      if (!node.is(graph::ops::k_read_variable_op)) return true;
      const std::vector<int>& users = rewriter.users(node.inputs[0]);
      return std::all_of(users.begin(), users.end(), [&](int user) {
        return user < 0 || rewriter.graph().node(user).is(graph::ops::k_read_variable_op) ||
               rewriter.before(last, user);
      });
    }
    value = node.inputs[0];
  }
}

/// Independent sums of squares.
struct Squares {
  std::vector<int> sums;
  std::vector<Value> values;
};

/// The nodes up to `last` that depend on the sums and so have to move behind it, in order of
/// execution; nothing where one of them cannot be moved.
std::optional<std::vector<int>> dependents(const Rewriter& rewriter,
                                           const Squares& squares,
                                           int last) {
  std::set<int> depending(squares.sums.begin(), squares.sums.end());
  std::vector<int> moved;
  for (int id = 0; id < rewriter.graph().size(); ++id) {
    const Node& node = rewriter.graph().node(id);
    const bool depends =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Value& input) {
          return depending.contains(input.node);
        });
    if (!depends || rewriter.before(last, id)) continue;
    if (node.def->stateful || node.preserve || rewriter.has_control_edge(id)) return std::nullopt;
    depending.insert(id);
    moved.push_back(id);
  }
  return moved;
}

}  // namespace

graph::Graph group_squares(const graph::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target.supports);
  // By level: the largest number of sums of squares on a path to this one. Sums of the same level
  // do not depend on each other.
  std::map<int, Squares> groups;
  std::vector<int> level(static_cast<std::size_t>(graph.size()), 0);
  for (int id = 0; id < graph.size(); ++id) {
    int& node_level = level[static_cast<std::size_t>(id)];
    for (const Value& input : graph.node(id).inputs) {
      node_level = std::max(node_level, level[static_cast<std::size_t>(input.node)]);
    }
    const std::optional<Value> x = squared(rewriter, id);
    if (!x) continue;
    groups[node_level].sums.push_back(id);
    groups[node_level].values.push_back(*x);
    ++node_level;
  }
  for (const auto& [depth, squares] : groups) {
    const int last = std::max_element(squares.values.begin(),
                                      squares.values.end(),
                                      [&](const Value& a, const Value& b) {
                                        return rewriter.before(a.node, b.node);
                                      })
                         ->node;
    const auto moved = dependents(rewriter, squares, last);
    const bool keeps =
        std::all_of(squares.values.begin(), squares.values.end(), [&](const Value& value) {
          return keeps_until(rewriter, value, last);
        });
    if (squares.sums.size() < 2 || !moved || !keeps) continue;
    NewNode norms{.op = "SquaredNorms", .inputs = squares.values, .at = last};
    norms.attrs = {{"Tout", std::vector<DType>(squares.sums.size(), DType::float32)}};
    for (std::size_t i = 0; i < squares.sums.size(); ++i) {
      norms.results.push_back({{squares.sums[i], 0}, static_cast<int>(i)});
    }
    if (rewriter.add({std::move(norms)}, squares.sums.front()) < 0) continue;
    for (const int id : *moved) rewriter.move(id, rewriter.position(last));
  }
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes

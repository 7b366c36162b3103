#include "precision/unscaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "config/warning_codes.h"
#include "core/half.h"
#include "core/ranges.h"
#include "graph/op_handles.h"

namespace halfstep::precision {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

constexpr double k_smallest_subnormal = 0x1p-24;
constexpr double k_smallest_normal = 0x1p-14;
/// A smaller constant is not considered a loss scale.
constexpr double k_smallest_constant_scale = 16;

/// Ops that pass a value on, possibly in another dtype; the read of a variable counts as its
/// handle.
constexpr std::array<std::string_view, 4> k_transparent{
    "Cast", "Identity", "ReadVariableOp", "StopGradient"};

bool is_transparent(const Node& node) {
  return !node.inputs.empty() && contains(k_transparent, node.op);
}

bool is_division(const Node& node) {
  return (node.is(graph::ops::k_real_div, graph::ops::k_div)) && node.inputs.size() == 2;
}

/// The source of a scale. Two constants are the same source when they are equal up to the rounding
/// of a reciprocal in float32, which is below 1e-7.
struct ScaleSource {
  Value value;
  std::optional<double> constant;

  /// Equal keys mean equal sources.
  std::tuple<std::int64_t, Value> key() const {
    if (!constant || *constant <= 0) return {0, value};
    return {std::llround(std::log(*constant) * 1e5) + k_offset, Value{}};
  }

 private:
  static constexpr std::int64_t k_offset = std::int64_t{1} << 40U;  ///< no logarithm gives 0
};

class UnscalingFinder {
 public:
  explicit UnscalingFinder(const Graph& graph)
      : graph_(graph), users_(static_cast<std::size_t>(graph.size())) {
    for (int id = 0; id < graph.size(); ++id) {
      for (const Value& input : graph.node(id).inputs) users_[at(input.node)].push_back(id);
    }
  }

  std::vector<Float16Unscaling> run() {
    std::vector<Float16Unscaling> found;
    for (int id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (!computes_in_float16(id)) continue;
      if (node.is(graph::ops::k_mul) && node.inputs.size() == 2) {
        for (const std::size_t side : {1U, 0U}) {
          const std::optional<ScaleSource> scale = reciprocal(node.inputs[side]);
          if (!scale || !is_scaled(node.inputs[1 - side], *scale)) continue;
          found.push_back({id, false, scale->constant});
          break;
        }
      } else if (is_division(node)) {
        const ScaleSource scale = source(node.inputs[1]);
        if (is_scaled(node.inputs[0], scale)) found.push_back({id, true, scale.constant});
      }
    }
    return found;
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  /// Of the ops that hand on a value, only a cast changes its dtype.
  bool is_cast(int id, DType from, DType to) const {
    const Node& node = graph_.node(id);
    return is_transparent(node) && !node.outputs.empty() &&
           graph_.type(node.inputs[0]).dtype == from && node.outputs[0].dtype == to;
  }

  /// Whether the op's result is rounded to float16: it is one, or the op is emulated as on CPUs, in
  /// float32 between casts from and to float16.
  bool computes_in_float16(int id) const {
    const Node& node = graph_.node(id);
    if (node.outputs.empty()) return false;
    if (node.outputs[0].dtype != DType::float32) return node.outputs[0].dtype == DType::float16;
    const std::vector<int>& users = users_[at(id)];
    return !users.empty() && std::ranges::all_of(users, [&](int user) {
      return is_cast(user, DType::float32, DType::float16);
    }) && std::ranges::all_of(node.inputs, [&](const Value& input) {
      return is_cast(input.node, DType::float16, DType::float32);
    });
  }

  /// The value behind casts, reads and identities. An imported graph may have cycles.
  Value origin(Value value) const {
    for (int steps = 0; steps < graph_.size() && is_transparent(graph_.node(value.node)); ++steps) {
      value = graph_.node(value.node).inputs[0];
    }
    return value;
  }

  ScaleSource source(Value value) const {
    const Value from = origin(value);
    return {from, constant_of(graph_.node(from.node))};
  }

  /// The scale of which a value is the reciprocal, or nothing.
  std::optional<ScaleSource> reciprocal(Value value) const {
    const Value from = origin(value);
    const Node& node = graph_.node(from.node);
    if ((node.is(graph::ops::k_reciprocal, graph::ops::k_inv)) && node.inputs.size() == 1) {
      return source(node.inputs[0]);
    }
    if (is_division(node)) {
      const Node& above = graph_.node(origin(node.inputs[0]).node);
      if (above.is(graph::ops::k_const) && constant_of(above).value_or(1) == 1)
        return source(node.inputs[1]);
      return std::nullopt;
    }
    const std::optional<double> constant = constant_of(node);
    if (constant && *constant > 0) return ScaleSource{from, 1 / *constant};
    return std::nullopt;
  }

  /// Whether `value` depends on a multiplication by `scale`.
  bool is_scaled(Value value, const ScaleSource& scale) {
    if (scale.constant && *scale.constant < k_smallest_constant_scale) return false;
    const auto [it, added] = scaled_.try_emplace(scale.key());
    if (added) it->second = behind_products_with(scale);
    return it->second[at(value.node)];
  }

  /// The multiplications by a scale and all nodes that depend on one of them.
  std::vector<bool> behind_products_with(const ScaleSource& scale) const {
    std::vector<bool> reached(at(graph_.size()));
    std::vector<int> open;
    for (int id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (!node.is(graph::ops::k_mul)) continue;
      const bool product = std::ranges::any_of(
          node.inputs, [&](Value input) { return source(input).key() == scale.key(); });
      if (product) open.push_back(id);
    }
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      if (reached[at(id)]) continue;
      reached[at(id)] = true;
      open.insert(open.end(), users_[at(id)].begin(), users_[at(id)].end());
    }
    return reached;
  }

  const Graph& graph_;
  std::vector<std::vector<int>> users_;
  std::map<std::tuple<std::int64_t, Value>, std::vector<bool>> scaled_;
};

}  // namespace

std::vector<Float16Unscaling> float16_unscalings(const Graph& graph) {
  return UnscalingFinder(graph).run();
}

SmallestGradient smallest_gradient(double scale, bool divides) {
  SmallestGradient smallest{k_smallest_subnormal, k_smallest_normal, k_smallest_subnormal / scale};
  const auto factor = static_cast<float>(float16(static_cast<float>(divides ? scale : 1 / scale)));
  // The scaled gradient is a float16 as well; for scales below 1 this is the tighter bound.
  smallest.in_float16 = std::max(smallest.in_float16, smallest.in_float32);
  smallest.full_digits = std::max(smallest.full_digits, k_smallest_normal / scale);
  if (factor == 0 || std::isinf(factor)) {
    smallest.in_float16 = smallest.full_digits = std::numeric_limits<double>::infinity();
  }
  return smallest;
}

std::optional<config::Warning> unscaling_warning(const Graph& graph,
                                                 std::optional<double> scale,
                                                 std::string_view remedy) {
  const std::vector<Float16Unscaling> found = float16_unscalings(graph);
  if (found.empty()) return std::nullopt;
  const Float16Unscaling& first = found.front();
  const Node& node = graph.node(first.node);
  if (first.scale) scale = first.scale;
  // TensorFlow's and Keras's initial scale, when the graph does not hold the value.
  const double used = scale.value_or(32768);
  const SmallestGradient smallest = smallest_gradient(used, first.divides);
  std::string message =
      fmt::format("'{}' ({}) takes the loss scale off in float16", node.name, node.op);
  if (found.size() > 1) message += fmt::format(", as do {} more ops", found.size() - 1);
  message += ": ";
  if (std::isinf(smallest.in_float16)) {
    message += fmt::format(
        "{}, so every gradient becomes 0",
        first.divides ? "float16 holds no scale from 65520 on" : "1/scale is 0 in float16");
  } else {
    message += fmt::format(
        "the smallest gradient it gives is {:.2g}, half of that and less becomes 0, and below "
        "{:.2g} "
        "digits are lost",
        smallest.in_float16,
        smallest.full_digits);
  }
  message += fmt::format("; in float32 it would give {:.2g} at the {}loss scale {:.6g}",
                         smallest.in_float32,
                         scale ? "" : "usual ",
                         used);
  if (!remedy.empty()) message += fmt::format("; {}", remedy);
  return config::warning(config::k_half_unscaling, node.origin.where, std::move(message));
}

}  // namespace halfstep::precision

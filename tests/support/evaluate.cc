#include "support/evaluate.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <span>

#include "core/dispatch.h"
#include "core/error.h"
#include "core/philox.h"
#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "passes/differentiate.h"

namespace halfstep::testing {
namespace {

using graph::Value;

/// Uninitialized memory: NaN in every floating dtype.
Tensor garbage(const graph::TensorType& type) {
  Tensor tensor(type.dtype, type.shape);
  if (tensor.bytes() > 0) std::memset(tensor.view().data, 0xFF, tensor.bytes());
  return tensor;
}

void copy_bytes(const TensorView& from, const TensorView& to) {
  if (to.bytes() > 0) std::memcpy(to.data, from.data, to.bytes());
}

const Tensor& given(const Tensors& tensors, std::string_view name, const graph::TensorType& type) {
  const auto it = tensors.find(name);
  require(it != tensors.end(), "no tensor for '{}'", name);
  require(it->second.dtype() == type.dtype && it->second.shape() == type.shape,
          "'{}' is {} {}, got {} {}",
          name,
          halfstep::name(type.dtype),
          to_string(type.shape),
          halfstep::name(it->second.dtype()),
          to_string(it->second.shape()));
  return it->second;
}

/// The sum of the case's differentiated outputs, each element times a weight of its own.
Value weighted_sum(graph::Builder& b, const OpCase& c, BuiltCase& built) {
  std::vector<Value> sums;
  for (int port : c.differentiated) {
    const Value y{built.node, port};
    const std::string name = fmt::format("weights{}", port);
    Tensor weights(b.dtype(y), b.shape(y));
    RandomStream random(17, static_cast<std::uint64_t>(port));
    for (double& w : weights.span<double>()) w = 0.5 + static_cast<double>(random.uniform());
    const Value factor = b.placeholder(name, b.dtype(y), b.shape(y));
    built.feeds[name] = std::move(weights);
    sums.push_back(graph::ops::reduce(b, "Sum", b.add("Mul", {y, factor})));
  }
  return graph::ops::accumulate(b, sums);
}

}  // namespace

Tensor constant_tensor(const graph::Node& node) {
  const auto fill = [&](const auto& values) {
    Tensor tensor(node.outputs[0].dtype, node.outputs[0].shape);
    dispatch(tensor.dtype(), [&]<class T>(Type<T>) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(tensor.elements()); ++i) {
        const auto value = values[values.size() == 1 ? 0 : i];
        tensor.as<T>()[i] = static_cast<T>(static_cast<Compute<T>>(value));
      }
    });
    return tensor;
  };
  const graph::AttrValue* value = node.attrs.find("value");
  require(value != nullptr, "{} has no value", node.name);
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(value)) return fill(*integers);
  return fill(std::get<std::vector<double>>(*value));
}

void run_kernel(const backend::Kernel& kernel,
                const backend::NodeView& node,
                const backend::Capabilities& capabilities,
                std::span<const TensorView> in,
                std::span<const TensorView> out) {
  if (node.node.def->aliases) {
    if (out[0].data != in[0].data) copy_bytes(in[0], out[0]);
    return;
  }
  const backend::Prepared prepared = kernel.prepare(node, capabilities);
  // Memory behind the workspace stays as it is.
  constexpr std::size_t k_guard = 4096;
  const AlignedBuffer workspace(prepared.workspace_bytes + k_guard);
  std::memset(workspace.data(), 0xFF, workspace.bytes());
  prepared.launch->run({in, out, workspace.data()});
  const std::span guard(workspace.data() + prepared.workspace_bytes, k_guard);
  CHECK_MESSAGE(std::ranges::all_of(guard, [](std::byte x) { return x == std::byte{0xFF}; }),
                fmt::format("{} writes beyond its workspace", kernel.name));
}

std::vector<Tensor> evaluate(const graph::Graph& graph,
                             const backend::Backend& backend,
                             std::span<const Value> fetches,
                             const Tensors& feeds,
                             Tensors& variables) {
  std::vector<std::vector<TensorView>> views(static_cast<std::size_t>(graph.size()));
  std::deque<Tensor> owned;
  const auto view_of = [&](Value v) {
    return views[static_cast<std::size_t>(v.node)][static_cast<std::size_t>(v.port)];
  };
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    std::vector<TensorView>& out = views[static_cast<std::size_t>(id)];
    if (node.op == "VarHandleOp") {
      const graph::TensorType type{node.attrs.get<DType>("dtype"), node.attrs.get<Shape>("shape")};
      out.push_back(given(variables, node.attrs.get<std::string>("shared_name"), type).view());
      continue;
    }
    std::vector<TensorView> in;
    for (Value v : node.inputs) in.push_back(view_of(v));
    if (node.op == "Const") {
      out.push_back(owned.emplace_back(constant_tensor(node)).view());
    } else if (node.op == "Placeholder") {
      out.push_back(owned.emplace_back(given(feeds, node.name, node.outputs[0]).clone()).view());
    } else if (node.op == "ReadVariableOp") {
      out.push_back(owned.emplace_back(garbage(node.outputs[0])).view());
      copy_bytes(in[0], out[0]);
    } else {
      for (const graph::TensorType& type : node.outputs) {
        out.push_back(owned.emplace_back(garbage(type)).view());
      }
      const backend::NodeView view{graph, node};
      const backend::Choice choice = backend::choose(backend, view);
      require(choice.kernel != nullptr, "no kernel accepts {} ({})", node.name, node.op);
      run_kernel(*choice.kernel, view, backend.capabilities, in, out);
    }
  }
  std::vector<Tensor> results;
  for (Value v : fetches) {
    const TensorView view = view_of(v);
    copy_bytes(view, results.emplace_back(view.dtype, view.shape).view());
  }
  return results;
}

std::string gradient_misses(const OpCase& c, const backend::Backend& backend) {
  BuiltCase built = build(c, DType::float64);
  graph::Builder b(built.graph, graph::op_table());
  const Value y = weighted_sum(b, c, built);
  std::vector<std::size_t> tested;
  std::vector<Value> xs;
  for (std::size_t i = 0; i < built.inputs.size(); ++i) {
    const graph::Node& from = built.graph.node(built.inputs[i].node);
    if (from.op != "Placeholder" || !is_floating(b.dtype(built.inputs[i]))) continue;
    tested.push_back(i);
    xs.push_back(built.inputs[i]);
  }
  BuiltCase forward = build(c, DType::float64);
  graph::Builder fb(forward.graph, graph::op_table());
  const Value fy = weighted_sum(fb, c, forward);

  const std::vector<Value> dx = passes::differentiate(b, y, xs);
  graph::verify(built.graph, "differentiate");
  std::vector<Value> fetches;
  for (Value v : dx) fetches.push_back(v.valid() ? v : y);
  const std::vector<Tensor> got =
      evaluate(built.graph, backend, fetches, built.feeds, built.variables);
  const auto value = [&] {
    const std::vector<Tensor> result =
        evaluate(forward.graph, backend, std::vector{fy}, forward.feeds, forward.variables);
    return result[0].as<double>()[0];
  };

  std::string text;
  // Truncation is of order h^2 and cancellation of order eps / h: h = eps^(1/3) balances them.
  const double step = std::cbrt(epsilon(DType::float64));
  const double scale = std::abs(value()) + c.magnitude;
  for (std::size_t k = 0; k < tested.size(); ++k) {
    if (std::find(c.no_gradient.begin(), c.no_gradient.end(), tested[k]) != c.no_gradient.end()) {
      if (dx[k].valid()) text += fmt::format("  input {}: listed without gradient\n", tested[k]);
      continue;
    }
    Tensor& x = forward.feeds.find(fmt::format("x{}", tested[k]))->second;
    RandomStream random(23, k);
    const std::int64_t trials = std::min<std::int64_t>(x.elements(), 16);
    for (std::int64_t trial = 0; trial < trials; ++trial) {
      const auto i =
          trials == x.elements()
              ? trial
              : static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(x.elements())));
      double& element = x.as<double>()[i];
      const double kept = element;
      element = kept + step;
      const double above = value();
      element = kept - step;
      const double below = value();
      element = kept;
      const double want = (above - below) / (2 * step);
      const double slope = dx[k].valid() ? got[k].as<double>()[i] : 0;
      const double allowed = 16 * step * step * (scale + std::abs(want));
      if (!(std::abs(slope - want) <= allowed)) {
        text += fmt::format(
            "  input {}, element {}: gradient {:.12g}, by differences {:.12g}, "
            "allowed {:.3g}\n",
            tested[k],
            i,
            slope,
            want,
            allowed);
      }
    }
  }
  return text;
}

}  // namespace halfstep::testing

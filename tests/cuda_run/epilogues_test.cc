// Dense layers, forward and backward, as matmuls with epilogues on the device, compared with the
// unfused ops on the CPU.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <set>
#include <string_view>

#include "core/philox.h"
#include "cuda_run/device.h"
#include "graph/ops/ops.h"
#include "plan/plan.h"

namespace halfstep::train {
namespace {

using graph::Builder;
using graph::Graph;
using graph::Value;

struct Extents {
  std::int64_t batch, in, hidden, out;
};

/// y = relu(x w1 + b1) w2 + b2 and its gradients for a given dy.
Graph layers_of(DType dtype, const Extents& e) {
  Graph graph;
  Builder b(graph, graph::op_table());
  const auto input = [&](std::string_view name, Shape shape) {
    return b.placeholder(name, dtype, shape);
  };
  const auto matmul = [&](Value l, Value r, bool tl, bool tr) {
    return b.add("MatMul", {l, r}, {{"transpose_a", tl}, {"transpose_b", tr}});
  };
  const Value x = input("x", {e.batch, e.in}), dy = input("dy", {e.batch, e.out});
  const Value w1 = input("w1", {e.in, e.hidden}), w2 = input("w2", {e.hidden, e.out});
  const Value b1 = input("b1", {e.hidden}), b2 = input("b2", {e.out});
  const Value h = b.add("Relu", {b.add("BiasAdd", {matmul(x, w1, false, false), b1})});
  const Value y = b.add("BiasAdd", {matmul(h, w2, false, false), b2});
  const Value dh = b.add("ReluGrad", {matmul(dy, w2, false, true), h});
  graph.fetches() = {{"h", h},
                     {"y", y},
                     {"db2", b.add("BiasAddGrad", {dy})},
                     {"dw2", matmul(h, dy, true, false)},
                     {"db1", b.add("BiasAddGrad", {dh})},
                     {"dw1", matmul(x, dh, true, false)}};
  return graph;
}

/// A plan with an arena and inputs of its own, the same for all.
struct Bound {
  Bound(const Graph& graph, const backend::Backend& backend)
      : plan(plan::compile(graph, backend)),
        state(graph, 1, backend.memory),
        arena(backend.memory) {
    arena.reserve(plan.arena_bytes());
    // Nobody may count on memory that is 0; these are NaN in every dtype.
    const std::vector<std::uint8_t> garbage(arena.bytes(), 0xff);
    backend.memory->upload(garbage.data(), arena.data(), garbage.size());
    plan.bind(state, arena);
    RandomStream random(7, 0);
    for (const char* name : {"x", "dy", "w1", "w2", "b1", "b2"}) {
      const TensorView to = plan.input(name);
      // Sums of small integers and a half are exact before the Relu, so that no sign is in doubt.
      const Tensor values(to.dtype, to.shape), wide(DType::float64, to.shape);
      for (double& value : wide.span<double>()) {
        value = static_cast<double>(random.below(3)) - (name == std::string_view("b1") ? 0.5 : 1.0);
      }
      convert(wide.view(), values.view());
      plan.write(name, values.view().data);
    }
  }

  std::vector<double> fetch(std::string_view name) const {
    const TensorView from = plan.fetch(name);
    const Tensor values(from.dtype, from.shape);
    plan.read(name, values.view().data);
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < from.elements(); ++i) {
      numbers.push_back(element_as_double(values.view(), i));
    }
    return numbers;
  }

  plan::Plan plan;
  plan::State state;
  plan::Arena arena;
};

std::set<std::string> epilogues(const plan::Plan& plan) {
  std::set<std::string> found;
  for (int id = 0; id < plan.graph().size(); ++id) {
    const graph::Node& node = plan.graph().node(id);
    if (node.op == "FusedMatMul") found.insert(node.attrs.get<std::string>("epilogue"));
  }
  return found;
}

void check_alike(DType dtype, const Extents& e) {
  const Graph graph = layers_of(dtype, e);
  Bound device(graph, emulated()), host(graph, backend::cpu_reference());
  CHECK(
      epilogues(device.plan) ==
      std::set<std::string>{"bias", "bias_relu_mask", "relu_gradient_bias_gradient", "sums_of_b"});
  CHECK(epilogues(host.plan).empty());
  // The second run launches the captured graph.
  for (int i = 0; i < 2; ++i) device.plan.run();
  host.plan.run();
  const double unit = epsilon(dtype);
  for (const auto& [name, value] : graph.fetches()) {
    CAPTURE(name);
    const std::vector<double> got = device.fetch(name), want = host.fetch(name);
    REQUIRE(got.size() == want.size());
    double largest = 0;
    for (const double w : want) largest = std::max(largest, std::abs(w));
    // Roundings after the matmul, the bias and the gradient of each of two layers; and one of the
    // accumulations of both devices.
    const double allowed = 8 * unit * std::max(1.0, largest);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      REQUIRE(std::abs(got[i] - want[i]) <= allowed);
    }
  }
}

}  // namespace

TEST_CASE("device: dense layers as fused matmuls give what their ops give") {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    CAPTURE(name(dtype));
    // The library has all epilogues, those of one layer, none.
    for (const Extents& e : {Extents{24, 40, 48, 16},
                             Extents{24, 40, 48, 10},
                             Extents{17, 5, 13, 3},
                             Extents{1, 1, 1, 1}}) {
      CAPTURE(e.batch);
      CAPTURE(e.out);
      check_alike(dtype, e);
    }
  }
}

TEST_CASE("device: large layers, whose ReLU has its gradient in an own kernel, give the same") {
  for (const DType dtype : {DType::float32, DType::float16}) {
    CAPTURE(name(dtype));
    check_alike(dtype, {4099, 8, 256, 5});
  }
}

TEST_CASE("device: layers whose rows are padded give what their ops give") {
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    CAPTURE(name(dtype));
    check_alike(dtype, {2048, 8, 2048, 5});
  }
}

}  // namespace halfstep::train

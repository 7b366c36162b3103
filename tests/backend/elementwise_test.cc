// Fused elementwise ops against the separate ops: bit-identical, in every dtype, for every
// instruction set, NaN and infinities included.

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>
#include <string_view>

#include "backend/cpu/processor.h"
#include "backend/cpu/vector/loops.h"
#include "graph/builder.h"
#include "graph/ops/ops.h"
#include "passes/lowering.h"
#include "support/evaluate.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using backend::Isa;
using graph::Builder;
using graph::Graph;
using graph::Value;

/// A Relu-like block with a bias and a mask, a smooth activation and its gradient, over x.
Graph block(DType dtype, const Shape& shape) {
  Graph graph;
  Builder b(graph, graph::op_table());
  const Value x = b.placeholder("x", dtype, shape);
  const Value bias = b.placeholder("bias", dtype, {shape.back()});
  const Value y = b.add("BiasAdd", {x, bias});
  const Value relu = b.add("Relu", {y});
  const Value keep = b.add("Greater", {relu, b.scalar(dtype, 0.5)});
  const Value dropped =
      b.add("Mul", {b.add("Mul", {relu, b.scalar(dtype, 1.1)}), b.cast(keep, dtype)});
  const Value wide = b.cast(dropped, DType::float32);
  const Value smooth = b.cast(b.add("Tanh", {b.add("Square", {wide})}), dtype);
  const Value dx = b.add("TanhGrad", {smooth, b.add("Sub", {smooth, x})});
  // Rounded, and stored in either width.
  const Value last = b.cast(b.add("Mul", {dx, relu}), DType::float32);
  graph.fetches() = {
      {"dropped", dropped}, {"keep", keep}, {"dx", dx}, {"wide", wide}, {"last", last}};
  return graph;
}

}  // namespace

TEST_CASE("fused elementwise: the bits are those of the ops apart") {
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const Shape& shape : {Shape{3, 7}, Shape{40, 129}, Shape{2, 5, 1024}}) {
      for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
        if (isa > backend::cpu::detect_isa()) continue;
        CAPTURE(name(dtype));
        CAPTURE(to_string(shape));
        const backend::Backend cpu = backend::cpu_backend(2, isa);
        const Graph apart = block(dtype, shape);
        const Graph fused = passes::fuse_elementwise(
            apart, {[&](const graph::OpInstance& op) {
              const backend::Kernel* kernel = backend::choose(cpu, backend::NodeView(op)).kernel;
              return kernel != nullptr && !kernel->reference;
            }});
        REQUIRE(fused.size() < apart.size() - 6);

        Tensors feeds;
        feeds["x"] = Tensor(dtype, shape);
        feeds["bias"] = Tensor(dtype, {shape.back()});
        Tensor wide(DType::float32, shape);
        for (std::int64_t i = 0; i < shape.elements(); ++i) {
          // Every thousandth is not finite.
          const double special = i % 2000 == 999 ? HUGE_VAL : std::nan("");
          wide.as<float>()[i] = static_cast<float>(
              i % 1000 == 999 ? special : 0.37 * static_cast<double>((i * 7919) % 23 - 11));
        }
        convert(wide.view(), feeds["x"].view());
        convert({DType::float32, {shape.back()}, wide.view().data}, feeds["bias"].view());

        Tensors none;
        const auto results = [&](const Graph& graph) {
          std::vector<Value> fetches;
          for (const auto& [name, value] : graph.fetches()) fetches.push_back(value);
          return evaluate(graph, cpu, fetches, feeds, none);
        };
        const std::vector<Tensor> want = results(apart);
        const std::vector<Tensor> got = results(fused);
        for (std::size_t i = 0; i < want.size(); ++i) {
          CAPTURE(i);
          const Comparison same = compare_bits(got[i].view(), want[i].view());
          CHECK_MESSAGE(same, same.text);
        }
      }
    }
  }
}

TEST_CASE("fused elementwise: every op with a loop of its own may be a step") {
  for (const auto& row : backend::cpu::vector::baseline_loops().maps) {
    CAPTURE(std::string_view(row.op));
    CHECK(graph::ops::elementwise_operands(row.op) == static_cast<std::size_t>(row.inputs));
  }
}

}  // namespace halfstep::testing

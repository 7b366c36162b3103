#include "backend/cuda/kernel_table.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ostream>
#include <set>
#include <string_view>

#include "graph/ops/ops.h"
#include "support/op_cases.h"

namespace halfstep::backend::cuda {
namespace {

/// Ops for matrix units of CPUs, and one whose pass asks for a kernel of it; no pass creates them
/// for another backend.
const std::set<std::string_view> k_cpu_only{
    "PackOperand", "PackedVariable", "PackedMatMul", "PackedMatMulUpdate", "CastBiasAddGrad"};

}  // namespace

TEST_CASE("kernel table: each op that the CPU runs has a kernel on a GPU") {
  std::set<std::string_view> rows;
  for (const Kernel& row : cuda::kernel_table()) rows.insert(row.op);
  for (const Kernel& kernel : cpu_reference().kernels) {
    CAPTURE(kernel.op);
    CHECK(rows.contains(kernel.op) != k_cpu_only.contains(kernel.op));
  }
}

TEST_CASE("kernel table: no entry occurs twice, and each has a name") {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const Kernel& row : cuda::kernel_table()) {
    CAPTURE(row.op);
    CHECK(seen.emplace(row.op, row.name).second);
    CHECK(row.name.find('/') != std::string_view::npos);
  }
}

TEST_CASE("kernel table: bfloat16 matmuls need compute capability 8.0") {
  using graph::Value;
  graph::Graph graph;
  graph::Builder b(graph, graph::op_table());
  const Value x = b.placeholder("x", DType::bfloat16, {4, 4});
  const Value y = b.add("MatMul", {x, x}, {}, "product");
  const NodeView node{graph, graph.node(y.node)};
  CHECK(choose(absent_gpu(80), node).kernel != nullptr);
  const Choice old = choose(absent_gpu(75), node);
  CHECK(old.kernel == nullptr);
  REQUIRE(old.refused.size() == 1);
  CHECK(old.refused[0].second == "bfloat16 needs compute capability 8.0");
}

TEST_CASE("kernel table: attention of many scores and channels stays matmuls on tensor cores") {
  const auto refusal = [](DType dtype, std::int64_t steps, std::int64_t depth) -> std::string {
    graph::Graph graph;
    graph::Builder b(graph, graph::op_table());
    const graph::Value x = b.placeholder("x", dtype, {8, 4, steps, depth});
    const graph::Value y = b.add("FusedAttention", {x, x, x}, {}, "attention");
    const Choice choice = choose(absent_gpu(90), {graph, graph.node(y.node)});
    return choice.kernel != nullptr ? "" : choice.refused.at(0).second;
  };
  const std::string slower = "matmuls of so many scores and channels take less time";
  CHECK(refusal(DType::float16, 256, 32) == "");
  CHECK(refusal(DType::bfloat16, 512, 32) == slower);
  CHECK(refusal(DType::bfloat16, 4096, 16) == "");
  CHECK(refusal(DType::float32, 512, 64) == "");
  CHECK(refusal(DType::float32, 512, 68) == slower);
  CHECK(refusal(DType::float32, 16, 132) == "heads of more than 128 channels");
  CHECK(refusal(DType::float64, 16, 16) == "no attention of float64");
}

TEST_CASE("kernel table: tensors of more than 2^32 elements are refused before a run") {
  graph::Graph graph;
  graph::Builder b(graph, graph::op_table());
  const std::int64_t side = std::int64_t{1} << 16;
  for (const std::int64_t columns : {side - 1, side + 1}) {
    CAPTURE(columns);
    const graph::Value x =
        b.placeholder(fmt::format("x{}", columns), DType::uint8, {side, columns});
    const graph::Value y = b.add("Cast", {x}, {{"DstT", DType::float16}});
    const Choice choice = choose(absent_gpu(90), {graph, graph.node(y.node)});
    CHECK((choice.kernel != nullptr) == (columns < side));
    if (columns < side) continue;
    REQUIRE(choice.refused.size() == 1);
    CHECK(choice.refused[0].second == "4295032832 elements are more than 2^32");
  }
}

TEST_CASE("kernel table: nothing runs on a device that is not there") {
  Kernel row;
  for (const Kernel& candidate : cuda::kernel_table()) {
    if (candidate.op == "Relu") row = candidate;
  }
  graph::Graph graph;
  graph::Builder b(graph, graph::op_table());
  const graph::Value y = b.add("Relu", {b.placeholder("x", DType::float32, {4})}, {}, "y");
  Prepared prepared = absent_gpu(90).prepare(row, {graph, graph.node(y.node)});
  CHECK_THROWS_AS(prepared.launch->run({}), InternalError);
}

}  // namespace halfstep::backend::cuda

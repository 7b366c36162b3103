#include "backend/cost_model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>
#include <set>
#include <string>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "core/error.h"
#include "graph/builder.h"
#include "graph/ops/ops.h"

namespace halfstep::backend {
namespace {

using graph::Value;
using Ints = std::vector<std::int64_t>;

constexpr DType k_bf16 = DType::bfloat16;

Workload matmul(std::int64_t n, std::int64_t k, DType dtype = k_bf16, std::int64_t products = 1) {
  return {Workload::Kind::matmul, dtype, products, {n, k, 1, 1, 1}};
}

/// A graph of one MatMul or Conv2D.
struct OneNode {
  graph::Graph graph;
  int id = -1;

  NodeView view() const { return {graph, graph.node(id)}; }
};

OneNode matmul_node(std::int64_t m, std::int64_t k, std::int64_t n, DType dtype = k_bf16) {
  OneNode one;
  graph::Builder b(one.graph, graph::op_table());
  const Value x = b.placeholder("x", dtype, {m, k}), w = b.placeholder("w", dtype, {k, n});
  one.id = b.add_node("MatMul", {x, w}, {});
  return one;
}

OneNode conv_node(std::int64_t batch, std::int64_t groups = 1) {
  OneNode one;
  graph::Builder b(one.graph, graph::op_table());
  const Value x = b.placeholder("x", k_bf16, {batch, 12, 10, 8});
  const Value w = b.placeholder("w", k_bf16, {3, 3, 8 / groups, 16});
  one.id = b.add_node(
      "Conv2D", {x, w}, {{"strides", Ints{1, 2, 1, 1}}, {"padding", std::string("SAME")}});
  return one;
}

Prepared nothing(const NodeView&, const Capabilities&) { return {}; }
Accepts always(const NodeView&, const Capabilities&) { return Accepts::yes(); }
Accepts never(const NodeView&, const Capabilities&) { return Accepts::no("never"); }

/// A backend whose kernels are known by name alone.
Backend backend_of(std::span<const Kernel> kernels, std::vector<CostModel::Sample> samples) {
  Backend backend;
  backend.name = "test";
  backend.kernels = kernels;
  backend.capabilities.costs = std::make_shared<const CostModel>("test", std::move(samples));
  return backend;
}

std::string parse_error(const std::string& text) {
  try {
    CostModel::parse(text, "costs.txt");
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("cost model: the text form reads back") {
  const CostModel model(
      "measured here",
      {{"packed/amx", matmul(64, 784), 1.25e-5},
       {"onednn/conv by float32",
        {Workload::Kind::conv_backward_filter, DType::float16, 0, {9, 8, 7, 6, 4}},
        0.5}},
      {{1, 2.5e12, "amx Xeon"}, {8, 8e12, "amx Xeon"}});
  const CostModel again = CostModel::parse(model.text(), "costs.txt");
  CHECK(again.origin() == "measured here");
  CHECK(again.text() == model.text());
  CHECK(again.peaks() == model.peaks());
  REQUIRE(again.samples().size() == 2);
  CHECK(again.samples()[1].kernel == "onednn/conv by float32");
  CHECK(again.samples()[1].workload.shape == Workload::Extents{9, 8, 7, 6, 4});
}

TEST_CASE("cost model: a damaged line is named with its file and number") {
  const std::string good = "# origin\nmatmul bfloat16 1 64 64 1 1 1 1e-5 packed/amx\n";
  CHECK(parse_error(good).empty());
  for (const char* bad : {"matmul bfloat16 1 64 64 1 1 1 1e-5",
                          "matmul bfloat16 1 64 64 1 1 1 -1e-5 packed/amx",
                          "matmul bfloat16 1 64 64 1 1 1 nan packed/amx",
                          "matmul bfloat16 1 64 0 1 1 1 1e-5 packed/amx",
                          "matmul bfloat17 1 64 64 1 1 1 1e-5 packed/amx",
                          "matmal bfloat16 1 64 64 1 1 1 1e-5 packed/amx",
                          "matmul bfloat16 1 64 99999999999999999999 1 1 1 1e-5 packed/amx",
                          "# peak 0 1e12 amx",
                          "# peak 2 -1e12 amx",
                          "# peak 2 1e12",
                          "<html>"}) {
    CAPTURE(bad);
    CHECK(parse_error(good + bad + "\n").starts_with("costs.txt:3"));
  }
}

TEST_CASE("cost model: exact at measured shapes, between its neighbours elsewhere") {
  // 1e-6 and 4e-6 seconds for a flop.
  const double fast = matmul(64, 64).flops() * 1e-6, slow = matmul(256, 64).flops() * 4e-6;
  const CostModel model("test", {{"a", matmul(64, 64), fast}, {"a", matmul(256, 64), slow}});
  CHECK(*model.seconds("a", matmul(64, 64)) == fast);
  CHECK(*model.seconds("a", matmul(256, 64)) == slow);
  // As far from both: the geometric mean of the rates.
  CHECK(*model.seconds("a", matmul(128, 64)) ==
        doctest::Approx(matmul(128, 64).flops() * 2e-6).epsilon(1e-12));
  const double near = *model.seconds("a", matmul(80, 64)) / matmul(80, 64).flops();
  CHECK(near > 1e-6);
  CHECK(near < 2e-6);
  CHECK_FALSE(model.seconds("b", matmul(64, 64)));
  CHECK_FALSE(model.seconds("a", matmul(64, 64, DType::float32)));
}

TEST_CASE("cost model: float16 times hold for their number of partial products, 0 for all") {
  const CostModel model("test",
                        {{"a", matmul(64, 64, DType::float16, 3), 3e-6},
                         {"a", matmul(64, 64, DType::float16, 4), 4e-6},
                         {"b", matmul(64, 64, DType::float16, 0), 5e-6}});
  CHECK(*model.seconds("a", matmul(64, 64, DType::float16, 3)) == 3e-6);
  CHECK(*model.seconds("a", matmul(64, 64, DType::float16, 4)) == 4e-6);
  CHECK(*model.seconds("b", matmul(64, 64, DType::float16, 3)) == 5e-6);
  CHECK(*model.seconds("b", matmul(64, 64, DType::float16, 4)) == 5e-6);
}

TEST_CASE("cost model: the workload of a node does not depend on its batch") {
  const auto extents = [](const OneNode& one) { return workload_of(one.view())->shape; };
  CHECK(extents(conv_node(1)) == Workload::Extents{6 * 10, 8, 16, 9, 2});
  CHECK(extents(conv_node(1000)) == extents(conv_node(1)));
  CHECK(extents(matmul_node(1, 30, 20)) == Workload::Extents{20, 30, 1, 1, 1});
  CHECK(extents(matmul_node(8192, 30, 20)) == extents(matmul_node(1, 30, 20)));
  // The gradients of a dense layer of 30 inputs and 20 units.
  const auto gradient = [](Shape a, Shape b, bool transpose_a) {
    OneNode one;
    graph::Builder builder(one.graph, graph::op_table());
    const Value x = builder.placeholder("x", k_bf16, a), y = builder.placeholder("y", k_bf16, b);
    one.id = builder.add_node(
        "MatMul", {x, y}, {{"transpose_a", transpose_a}, {"transpose_b", !transpose_a}});
    return *workload_of(one.view());
  };
  for (const std::int64_t batch : {1, 8192}) {
    const Workload data = gradient({batch, 20}, {30, 20}, false);
    CHECK(data.kind == Workload::Kind::matmul_backward_data);
    CHECK(data.shape == Workload::Extents{30, 20, 1, 1, 1});
    const Workload weights = gradient({batch, 30}, {batch, 20}, true);
    CHECK(weights.kind == Workload::Kind::matmul_backward_weights);
    CHECK(weights.shape == Workload::Extents{20, 30, 1, 1, 1});
  }
  CHECK(matmul(20, 30).flops() == 2.0 * k_nominal_batch * 20 * 30);
  CHECK_FALSE(workload_of(conv_node(1, 2).view()));
}

TEST_CASE("choice of a kernel: by predicted time where it is known, by order elsewhere") {
  const Kernel kernels[] = {{"MatMul", "first", always, nothing},
                            {"MatMul", "slow", always, nothing},
                            {"MatMul", "fast", always, nothing},
                            {"MatMul", "refused", never, nothing},
                            {"MatMul", "last", always, nothing}};
  const OneNode node = matmul_node(4, 64, 64);
  const auto chosen = [&](std::span<const Kernel> from, std::vector<CostModel::Sample> samples) {
    return choose(backend_of(from, std::move(samples)), node.view()).kernel->name;
  };
  const std::vector<CostModel::Sample> samples{{"slow", matmul(64, 64), 2e-5},
                                               {"fast", matmul(64, 64), 1e-5},
                                               {"refused", matmul(64, 64), 1e-6}};
  CHECK(chosen(kernels, {}) == "first");
  // Nothing is known of the first kernel: it keeps its position.
  CHECK(chosen(kernels, samples) == "first");
  const std::span<const Kernel> known = std::span(kernels).subspan(1);
  CHECK(chosen(known, {}) == "slow");
  CHECK(chosen(known, samples) == "fast");
  const Choice choice = choose(backend_of(known, samples), node.view());
  REQUIRE(choice.refused.size() == 1);
  CHECK(choice.refused[0].first == "refused");
}

TEST_CASE("packing: counted for operands that need a launch, not for those that arrive packed") {
  // The packed matmul alone takes 4 us, packing an operand or a pass over the result 3, the matmul
  // without packing 3.5.
  const std::vector<CostModel::Sample> samples{
      {"packed/x", matmul(64, 64), 4e-6},
      {"packer", {Workload::Kind::pack, k_bf16, 1, {1, 64, 1, 1, 1}}, 3e-6},
      {"plain", matmul(64, 64), 3.5e-6}};
  Capabilities capabilities;
  capabilities.costs = std::make_shared<const CostModel>("test", samples);
  const auto nothing = std::make_shared<const CostModel>("test", std::vector<CostModel::Sample>());
  for (const bool packs : {false, true}) {
    CAPTURE(packs);
    OneNode one;
    graph::Builder b(one.graph, graph::op_table());
    const graph::Attrs side{{"dtype", k_bf16}, {"side", std::string("a")}, {"transpose", false}};
    const Value a = packs ? b.add("PackOperand", {b.placeholder("x", k_bf16, {64, 64})}, side)
                          : b.placeholder("a", DType::uint8, {64 * 64 * 2});
    const Value w = b.placeholder("b", DType::uint8, {64 * 64 * 2});
    one.id = b.add_node("PackedMatMul",
                        {a, w},
                        {{"T", k_bf16},
                         {"Tresults", std::vector<DType>{k_bf16}},
                         {"m", std::int64_t{64}},
                         {"n", std::int64_t{64}},
                         {"k", std::int64_t{64}},
                         {"products", std::int64_t{1}}});
    const OneNode square = matmul_node(64, 64, 64);
    CHECK(static_cast<bool>(packing_pays(square.view(), one.view(), "packed/x", capabilities)) ==
          !packs);
    // A kernel that is missing from a table with others is not chosen by it.
    CHECK_FALSE(packing_pays(square.view(), one.view(), "packed/new", capabilities));
    CHECK(packing_pays(square.view(), one.view(), "packed/new", {.costs = nothing}));
  }
}

TEST_CASE("shipped cost models: every measured kernel exists, and none names another set's") {
  std::set<std::string_view> names;
  for (const Kernel& kernel : cpu::all_kernels()) names.insert(kernel.name);
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    CAPTURE(name(isa));
    const CostModel& model = shipped_cost_model(isa);
    CHECK_FALSE(model.origin().empty());
    for (const CostModel::Sample& sample : model.samples()) {
      CAPTURE(sample.kernel);
      // Processors other than x86-64 have fewer kernels and no instruction sets.
      CHECK((names.contains(sample.kernel) || sample.kernel.starts_with("packed/")));
      if (isa < Isa::amx) CHECK(sample.kernel.find("amx") == std::string::npos);
    }
  }
}

}  // namespace halfstep::backend

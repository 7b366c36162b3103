#include "plan/plan.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <ostream>
#include <set>
#include <string_view>

#include "core/error.h"
#include "graph/ops/ops.h"
#include "plan/steps.h"
#include "support/evaluate.h"

namespace halfstep::plan {
namespace {

constexpr std::array<std::string_view, 3> k_policies{"float32", "mixed_float16", "mixed_bfloat16"};
constexpr std::int64_t k_batch = 12;

/// A plan with a state and an arena of its own, the arena full of `garbage`.
struct Standalone {
  Standalone(const graph::Graph& graph, const Lowering& lowering, int garbage = 0xFF)
      : state(graph, 7), plan(compile(graph, cpu(), lowering)) {
    arena.reserve(plan.arena_bytes());
    std::memset(arena.data(), garbage, arena.bytes());
    plan.bind(state, arena);
  }

  void step(std::uint32_t seed) {
    feed(plan, seed);
    plan.run();
  }

  State state;
  Plan plan;
  Arena arena;
};

bool same_bytes(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && a.bytes() == b.bytes() &&
         std::memcmp(a.data, b.data, a.bytes()) == 0;
}

Tensor copy(const TensorView& view) {
  Tensor tensor(view.dtype, view.shape);
  std::memcpy(tensor.view().data, view.data, view.bytes());
  return tensor;
}

}  // namespace

TEST_CASE("plan: an op that another device has no kernel for is refused with a way out") {
  backend::Backend device = cpu();
  device.name = "cuda";
  device.kernels = {};
  try {
    compile(step_graph("float32", k_batch), device, Lowering{});
    FAIL("compiled");
  } catch (const UserError& error) {
    CHECK(error.kind() == ErrorKind::unavailable);
    CHECK(error.problems().front().message.starts_with("cuda has no kernel for "));
    CHECK(error.problems().front().hint == "use --device cpu");
  }
}

TEST_CASE("plan: shared memory changes no bit against memory of its own for each value") {
  Lowering plain;
  plain.hides_values = false;
  for (std::string_view policy : k_policies) {
    CAPTURE(policy);
    const graph::Graph graph = step_graph(policy, k_batch);
    Standalone planned(graph, plain);
    testing::Tensors variables;
    for (const State::Entry& entry : planned.state.entries()) {
      variables[entry.variable.name] = entry.tensor.clone();
    }
    for (const std::uint32_t seed : {1U, 2U, 3U}) {
      CAPTURE(seed);
      feed(planned.plan, seed);
      testing::Tensors feeds;
      for (const char* name : {"images", "labels", "ordinal"})
        feeds[name] = copy(planned.plan.input(name));
      planned.plan.run();
      std::vector<graph::Value> fetches;
      for (const auto& [name, value] : graph.fetches()) fetches.push_back(value);
      const auto apart = testing::evaluate(graph, cpu(), fetches, feeds, variables);
      for (std::size_t i = 0; i < fetches.size(); ++i) {
        const std::string& name = graph.fetches()[i].first;
        CAPTURE(name);
        // A read of a variable aliases its memory, which already holds the next scale.
        if (name == "loss_scale") continue;
        CHECK(same_bytes(planned.plan.fetch(name), apart[i].view()));
      }
      for (const auto& [name, tensor] : variables) {
        CAPTURE(name);
        CHECK(same_bytes(planned.state.tensor(name).view(), tensor.view()));
      }
    }
  }
}

TEST_CASE("plan: activations that moved into normalizations change no bit") {
  for (std::string_view policy : k_policies) {
    CAPTURE(policy);
    const graph::Graph graph = residual_step_graph(policy, k_batch);
    Lowering plain;
    plain.hides_values = false;
    Standalone fused(graph, {});
    Standalone apart(graph, plain);
    const auto count = [](const Plan& plan, std::string_view op) {
      int found = 0;
      for (const KernelChoice& kernel : plan.kernels()) {
        found += plan.graph().node(kernel.node).op == op;
      }
      return found;
    };
    CHECK(fused.plan.hides_values());
    CHECK(count(fused.plan, "_FusedBatchNormEx") == 2);
    CHECK(count(fused.plan, "BatchNormReluGrad") == 1);
    CHECK_FALSE(apart.plan.hides_values());
    CHECK(count(apart.plan, "FusedBatchNormV3") == 2);
    for (const std::uint32_t seed : {1U, 2U, 3U}) {
      CAPTURE(seed);
      fused.step(seed);
      apart.step(seed);
      for (const State::Entry& entry : apart.state.entries()) {
        CAPTURE(entry.variable.name);
        CHECK(same_bytes(fused.state.tensor(entry.variable.name).view(), entry.tensor.view()));
      }
    }
  }
}

TEST_CASE("plan: pooling before a Relu changes no bit") {
  for (std::string_view policy : k_policies) {
    CAPTURE(policy);
    const graph::Graph graph = conv_step_graph(policy, k_batch);
    Lowering plain;
    plain.hides_values = false;
    Standalone first(graph, {});
    Standalone last(graph, plain);
    const auto pooled = [](const Plan& plan, std::string_view op) {
      const auto& kernels = plan.kernels();
      return std::any_of(kernels.begin(), kernels.end(), [&](const KernelChoice& kernel) {
        const graph::Node& node = plan.graph().node(kernel.node);
        return node.op == op &&
               plan.graph().node(node.inputs[op == "Relu" ? 0 : 1].node).op == "MaxPool";
      });
    };
    CHECK(pooled(first.plan, "Relu"));
    CHECK_FALSE(pooled(last.plan, "Relu"));
    CHECK(pooled(last.plan, "MaxPoolGrad"));
    for (const std::uint32_t seed : {1U, 2U, 3U}) {
      CAPTURE(seed);
      first.step(seed);
      last.step(seed);
      for (const State::Entry& entry : last.state.entries()) {
        CAPTURE(entry.variable.name);
        CHECK(same_bytes(first.state.tensor(entry.variable.name).view(), entry.tensor.view()));
      }
    }
  }
}

TEST_CASE("plan: what stood in the arena before changes no bit") {
  for (std::string_view policy : k_policies) {
    CAPTURE(policy);
    const graph::Graph graph = step_graph(policy, k_batch);
    std::set<std::string> hashes;
    for (const int garbage : {0x00, 0xFF, 0x5A}) {
      Standalone run(graph, {}, garbage);
      for (const std::uint32_t seed : {1U, 2U, 3U}) run.step(seed);
      hashes.insert(run.state.full_hash());
    }
    CHECK(hashes.size() == 1);
  }
}

TEST_CASE("plan: plans of full and tail batches share state and arena") {
  for (std::string_view policy : k_policies) {
    CAPTURE(policy);
    const graph::Graph full = step_graph(policy, k_batch), tail = step_graph(policy, 5);
    State state(full, 7);
    Plan a = compile(full, cpu()), b = compile(tail, cpu());
    Arena arena;
    arena.reserve(std::max(a.arena_bytes(), b.arena_bytes()));
    a.bind(state, arena);
    b.bind(state, arena);

    Standalone own(full, {});
    Plan own_tail = compile(tail, cpu());
    Arena own_arena;
    own_arena.reserve(own_tail.arena_bytes());
    own_tail.bind(own.state, own_arena);
    for (const std::uint32_t seed : {1U, 2U, 3U, 4U}) {
      feed(a, seed);
      a.run();
      feed(b, seed + 10);
      b.run();
      own.step(seed);
      feed(own_tail, seed + 10);
      own_tail.run();
    }
    CHECK(state.full_hash() == own.state.full_hash());
  }
}

TEST_CASE("plan: run, timed run and profile do the same step") {
  for (std::string_view policy : k_policies) {
    CAPTURE(policy);
    const graph::Graph graph = step_graph(policy, k_batch);
    Standalone plain(graph, {}), timed(graph, {}), profiled(graph, {});
    for (const std::uint32_t seed : {1U, 2U}) {
      plain.step(seed);
      feed(timed.plan, seed);
      PhaseSeconds seconds{};
      timed.plan.run(seconds);
      feed(profiled.plan, seed);
      std::vector<double> per_node(static_cast<std::size_t>(profiled.plan.graph().size()), 0);
      profiled.plan.profile(per_node);
    }
    CHECK(timed.state.full_hash() == plain.state.full_hash());
    CHECK(profiled.state.full_hash() == plain.state.full_hash());
  }
}

TEST_CASE("plan: a trace shows every launch and leaves the variables as they are") {
  Lowering lowering;
  lowering.hides_values = false;
  const graph::Graph graph = step_graph("mixed_float16", k_batch);
  Standalone run(graph, lowering);
  run.step(1);
  const std::string before = run.state.full_hash();
  feed(run.plan, 2);
  std::set<std::string> seen;
  run.plan.trace([&](const graph::Node& node,
                     std::span<const TensorView> inputs,
                     std::span<const TensorView> outputs) {
    CHECK(inputs.size() == node.inputs.size());
    seen.insert(node.name);
    CHECK(node.origin.phase != graph::Phase::update);
    REQUIRE(outputs.size() == node.outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CHECK(outputs[i].dtype == node.outputs[i].dtype);
      CHECK(outputs[i].data != nullptr);
    }
  });
  CHECK(run.state.full_hash() == before);
  for (const KernelChoice& choice : run.plan.kernels()) {
    const graph::Node& node = run.plan.graph().node(choice.node);
    if (choice.kernel.empty() || node.origin.phase == graph::Phase::update) continue;
    CAPTURE(node.name);
    CHECK(seen.contains(node.name));
  }
}

TEST_CASE("plan: an arena too small and a state of another model are bugs that are caught") {
  const graph::Graph graph = step_graph("float32", k_batch);
  Plan plan = compile(graph, cpu());
  State state(graph, 7);
  Arena small;
  small.reserve(plan.arena_bytes() - 1);
  CHECK_THROWS_AS(plan.bind(state, small), InternalError);
  Arena arena;
  arena.reserve(plan.arena_bytes());
  CHECK_NOTHROW(plan.bind(state, arena));

  graph::Graph fewer = graph;
  fewer.variables().pop_back();
  State lacking(fewer, 7);
  CHECK_THROWS_AS(plan.bind(lacking, arena), InternalError);
  graph::Graph other = graph;
  other.variables()[0].type.shape = {1, 2, 3};
  State unlike(other, 7);
  CHECK_THROWS_AS(plan.bind(unlike, arena), InternalError);
  CHECK_THROWS_AS(plan.fetch("nothing"), InternalError);
  CHECK_THROWS_AS(plan.input("nothing"), InternalError);
  CHECK(plan.has_input("images"));
  CHECK_FALSE(plan.has_input("nothing"));
}

TEST_CASE("plan: the arena is never larger than all values one after the other") {
  for (std::string_view policy : k_policies) {
    CAPTURE(policy);
    // Kernels in plain loops need almost no workspace: the values remain.
    const Plan plan =
        compile(step_graph(policy, k_batch), backend::cpu_reference(), {.hides_values = false});
    std::size_t all = 0, largest = 0;
    for (int id = 0; id < plan.graph().size(); ++id) {
      for (const graph::TensorType& type : plan.graph().node(id).outputs) {
        const std::size_t bytes =
            static_cast<std::size_t>(type.shape.elements()) * size_bytes(type.dtype);
        all += bytes + 64;
        largest = std::max(largest, bytes);
      }
    }
    CHECK(plan.arena_bytes() < all / 2);
    CHECK(plan.arena_bytes() >= largest);
    CHECK(plan.arena_bytes() % 64 == 0);
    // Others bring workspaces, of sizes that depend on the processor.
    CHECK(compile(step_graph(policy, k_batch), cpu(), {.hides_values = false}).arena_bytes() < all);
  }
}

TEST_CASE("plan: the launch that scales bytes is found where it does that alone") {
  const auto scaled = [](std::string_view first) {
    const StepConfig config(fmt::format(R"(
data: {{name: synthetic_digits}}
model:
  input: [8, 8, 1]
  layers:
    - {}
    - {{type: flatten}}
    - {{type: dense, units: 10, name: logits}}
    - {{type: softmax, dtype: float32}}
precision: {{policy: mixed_bfloat16}}
loss: sparse_categorical_crossentropy
optimizer: sgd
)",
                                        first));
    const Plan plan = compile(config.prepare(4).graph, cpu());
    return scaled_input(plan.graph(), "images");
  };
  const auto found = scaled("{type: average_pooling2d, pool_size: 2}");
  REQUIRE(found);
  CHECK(found->scale == doctest::Approx(1.0 / 255));
  // Fused with ops behind it, which read values of their own.
  CHECK_FALSE(scaled("{type: dropout, rate: 0.3}"));
  CHECK_FALSE(scaled("{type: activation, activation: relu}"));
}

}  // namespace halfstep::plan

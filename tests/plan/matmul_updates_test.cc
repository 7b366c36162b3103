// Gradients that are applied by the matmuls that compute them.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <string_view>

#include "config/load.h"
#include "nn/step_graph.h"
#include "plan/plan.h"
#include "plan/steps.h"
#include "support/tolerance.h"

namespace halfstep::plan {
namespace {

using namespace std::string_view_literals;

/// Three dense layers, of which the first two are worth packing, with sides that are no multiples
/// of a block.
graph::Graph dense_graph(std::string_view optimizer, std::string_view precision) {
  const std::string text = fmt::format(R"(
data: {{name: synthetic_digits}}
model:
  input: [15, 15, 1]
  layers:
    - {{type: flatten}}
    - {{type: dense, units: 97, activation: relu}}
    - {{type: dense, units: 70, activation: relu}}
    - {{type: dense, units: 10}}
    - {{type: softmax, dtype: float32}}
precision: {{policy: mixed_bfloat16, {}}}
loss: sparse_categorical_crossentropy
optimizer: {}
)",
                                       precision,
                                       optimizer);
  Diagnostics diagnostics;
  const config::RunSpec spec =
      config::parse_run_spec(config::load_text(text, "dense.yaml", diagnostics), diagnostics);
  const nn::StepSpec step = nn::read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();
  const nn::DataShape data{{15, 15, 1}, DType::uint8, {}, DType::int32};
  return nn::build_step(step, data, 64, nn::Purpose::train);
}

/// One plan and its state.
struct Run {
  State state;
  Plan plan;
  Arena arena;

  explicit Run(const graph::Graph& graph) : state(graph, 7), plan(compile(graph, cpu_by_rule())) {
    arena.reserve(plan.arena_bytes());
    plan.bind(state, arena);
  }

  void steps(std::uint32_t count) {
    for (std::uint32_t seed = 1; seed <= count; ++seed) {
      feed(plan, seed);
      plan.run();
    }
  }

  std::int64_t count(std::string_view op) const {
    return std::count_if(
        plan.kernels().begin(), plan.kernels().end(), [&](const KernelChoice& choice) {
          return plan.graph().node(choice.node).op == op;
        });
  }
};

}  // namespace

TEST_CASE("matmul updates: the state is the same, bit for bit, as with gradients in memory") {
  for (const std::string_view optimizer : {"{type: sgd, learning_rate: 1e-2}"sv,
                                           "{type: sgd, learning_rate: 1e-2, momentum: 0.9}"sv,
                                           "{type: rmsprop, learning_rate: 1e-3}"sv,
                                           "{type: adam, learning_rate: 1e-2}"sv,
                                           "{type: adamw, learning_rate: 1e-2}"sv}) {
    CAPTURE(optimizer);
    for (const std::string_view scale : {"loss_scale: none"sv, "loss_scale: 1024"sv}) {
      CAPTURE(scale);
      Run inside(dense_graph(optimizer, fmt::format("{}, on_nonfinite: apply", scale)));
      Run apart(dense_graph(optimizer, fmt::format("{}, on_nonfinite: stop", scale)));
      // Where matmuls are packed at all, both large layers are updated by theirs.
      CHECK(inside.count("PackedMatMulUpdate") ==
            (inside.plan.hides_values() && inside.count("PackedMatMul") > 0 ? 2 : 0));
      CHECK(apart.count("PackedMatMulUpdate") == 0);
      inside.steps(4);
      apart.steps(4);
      const auto& got = inside.state.entries();
      const auto& want = apart.state.entries();
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(got[i].variable.name);
        const testing::Comparison same =
            testing::compare_bits(got[i].tensor.view(), want[i].tensor.view());
        CHECK_MESSAGE(same, same.text);
      }
    }
  }
}

TEST_CASE("matmul updates: clipping by norm and guarded steps keep gradients in memory") {
  constexpr std::string_view k_sgd = "{type: sgd, learning_rate: 1e-2}";
  const auto fused = [](std::string_view optimizer, std::string_view precision) {
    return Run(dense_graph(optimizer, precision)).count("PackedMatMulUpdate");
  };
  for (const std::string_view clip : {"global_clipnorm: 1"sv, "clipnorm: 1"sv, "clipvalue: 1"sv}) {
    CAPTURE(clip);
    CHECK(fused(fmt::format("{{type: sgd, learning_rate: 1e-2, {}}}", clip),
                "on_nonfinite: apply") == 0);
  }
  CHECK(fused(k_sgd, "on_nonfinite: skip") == 0);
  CHECK(fused(k_sgd, "on_nonfinite: apply, loss_scale: dynamic") == 0);
}

TEST_CASE("matmul updates: no more memory than gradients take") {
  constexpr std::string_view k_adam = "{type: adam, learning_rate: 1e-2}";
  CHECK(Run(dense_graph(k_adam, "on_nonfinite: apply")).plan.arena_bytes() <=
        Run(dense_graph(k_adam, "on_nonfinite: stop")).plan.arena_bytes());
}

}  // namespace halfstep::plan

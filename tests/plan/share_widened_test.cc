// Values that a step keeps as rounded float32 where matmuls multiply float32, under each
// instruction set.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <ostream>
#include <random>
#include <string>
#include <string_view>

#include "backend/cpu/processor.h"
#include "graph/op_handles.h"
#include "plan/plan.h"
#include "plan/steps.h"
#include "support/tolerance.h"

namespace halfstep::plan {
namespace {

using backend::Isa;

/// Attention, whose operands are transposed, a norm and dense layers over rows of an image.
graph::Graph encoder_graph(std::string_view policy) {
  const StepConfig config(fmt::format(R"(
data: {{name: synthetic_digits}}
model:
  inputs: {{image: [8, 8, 1]}}
  nodes:
    steps: {{type: reshape, target_shape: [8, 8], from: image}}
    rows: {{type: dense, units: 20, activation: gelu, from: steps}}
    norm: {{type: layer_normalization, from: rows}}
    attention: {{type: multi_head_attention, num_heads: 2, key_dim: 8, from: norm}}
    sum: {{type: add, from: [rows, attention]}}
    flat: {{type: flatten, from: sum}}
    hidden: {{type: dense, units: 33, activation: relu, from: flat}}
    logits: {{type: dense, units: 10, from: hidden}}
    predictions: {{type: softmax, dtype: float32, from: logits}}
  outputs: [predictions]
precision: {{policy: {}}}
loss: sparse_categorical_crossentropy
optimizer: {{type: adam, learning_rate: 1e-2}}
)",
                                      policy));
  return config.prepare(16).graph;
}

/// Two to four dense layers on 8x8 images, of any widths.
graph::Graph random_graph(std::mt19937& random) {
  const auto one_of = [&](const auto& values) { return values[random() % std::size(values)]; };
  constexpr std::array<std::string_view, 2> k_mixed{"mixed_float16", "mixed_bfloat16"};
  constexpr std::array<std::string_view, 4> k_activations{"relu", "gelu", "sigmoid", "linear"};
  constexpr std::array k_widths{24, 64, 200, 512};
  constexpr std::array k_batches{24, 512, 1500};
  std::string layers = "    - {type: flatten}\n";
  for (std::size_t hidden = 1 + random() % 3; hidden > 0; --hidden) {
    layers += fmt::format("    - {{type: dense, units: {}, activation: {}}}\n",
                          one_of(k_widths),
                          one_of(k_activations));
  }
  const StepConfig config(fmt::format(R"(
data: {{name: synthetic_digits}}
model:
  input: [8, 8, 1]
  layers:
{}    - {{type: dense, units: 10, name: logits}}
    - {{type: softmax, dtype: float32}}
precision: {{policy: {}}}
loss: sparse_categorical_crossentropy
optimizer: {{type: sgd, learning_rate: 1e-2}}
)",
                                      layers,
                                      one_of(k_mixed)));
  return config.prepare(one_of(k_batches)).graph;
}

/// The state after three steps, and the number of matmuls in 16 bits.
struct ThreeSteps {
  State state;
  std::int64_t matmuls = 0;

  ThreeSteps(const graph::Graph& graph, const backend::Backend& backend, bool shares)
      : state(graph, 7) {
    Lowering lowering;
    if (!shares) lowering.passes.skip.emplace("share_widened");
    Plan plan = compile(graph, backend, lowering);
    Arena arena;
    arena.reserve(plan.arena_bytes());
    plan.bind(state, arena);
    for (const KernelChoice& choice : plan.kernels()) {
      const graph::Node& node = plan.graph().node(choice.node);
      matmuls += node.is(graph::ops::k_matmul, graph::ops::k_batch_matmul_v2) &&
                 is_half(node.outputs[0].dtype);
    }
    for (const std::uint32_t seed : {1U, 2U, 3U}) {
      feed(plan, seed);
      plan.run();
    }
  }
};

}  // namespace

TEST_CASE("share_widened: random networks run with every instruction set") {
  std::mt19937 random(20261126);
  for (int i = 0; i < 24; ++i) {
    CAPTURE(i);
    const graph::Graph graph = random_graph(random);
    for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
      if (isa > backend::cpu::detect_isa()) continue;
      CAPTURE(backend::name(isa));
      const ThreeSteps steps(graph, backend::cpu_backend(2, isa), true);
      // Without instructions for 16 bits every matmul that is not packed reads float32.
      if (isa < Isa::avx512_bf16) CHECK(steps.matmuls == 0);
    }
  }
}

TEST_CASE(
    "share_widened: the state of a step is the same, bit for bit, with every instruction set") {
  for (const std::string_view policy : {"mixed_float16", "mixed_bfloat16", "float16"}) {
    CAPTURE(policy);
    const graph::Graph graph = encoder_graph(policy);
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
      if (isa > backend::cpu::detect_isa()) continue;
      CAPTURE(backend::name(isa));
      const backend::Backend backend = backend::cpu_backend(2, isa);
      const ThreeSteps shared(graph, backend, true), apart(graph, backend, false);
      // Where bfloat16 has instructions, few matmuls of it are widened or none.
      if (policy != "mixed_bfloat16" || isa < Isa::avx512_bf16) {
        CHECK(shared.matmuls < apart.matmuls);
      }
      const auto& got = shared.state.entries();
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

}  // namespace halfstep::plan

// Attention in blocks beside the chain of ops that it replaces, and the memory of a step.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>
#include <string_view>

#include "graph/op_handles.h"
#include "plan/plan.h"
#include "plan/steps.h"
#include "support/tolerance.h"

namespace halfstep::plan {
namespace {

/// Tokens that the ReLU makes zeros are padding: about a quarter.
constexpr std::string_view k_padding = R"(
    cut: {type: dense, units: 2, activation: relu, trainable: false, from: tokens}
    kept: {type: masking, from: cut})";

/// One block of a Transformer over `steps` tokens of 8 values, of which some are padding where it
/// is `padded`, trained by gradient descent: a weight moves by its gradient.
StepConfig encoder(std::string_view precision,
                   std::int64_t steps,
                   std::string_view fields,
                   bool padded = false) {
  StepConfig config(fmt::format(R"(
data: {{name: synthetic_digits}}
model:
  inputs: {{image: [{}, 8, 1]}}
  nodes:
    tokens: {{type: reshape, target_shape: [{}, 8], from: image}}
{}
    embedded: {{type: dense, units: 16, from: {}}}
    attention: {{type: multi_head_attention, num_heads: 2, key_dim: 9, {}, from: embedded}}
    sum: {{type: add, from: [embedded, attention]}}
    plain: {{type: attention, from: sum}}
    pool: {{type: global_average_pooling1d, from: plain}}
    logits: {{type: dense, units: 10, from: pool}}
    predictions: {{type: softmax, dtype: float32, from: logits}}
  outputs: [predictions]
precision: {{{}, loss_scale: 1024}}
loss: sparse_categorical_crossentropy
optimizer: {{type: sgd, learning_rate: 1}}
)",
                                steps,
                                steps,
                                padded ? k_padding : "",
                                padded ? "kept" : "tokens",
                                fields,
                                precision));
  config.data.sample = {steps, 8, 1};
  return config;
}

PassOptions without_fusion() {
  PassOptions options;
  options.skip.emplace("fuse_attention");
  return options;
}

struct Step {
  Plan plan;
  State state;
  Arena arena;
  std::vector<float> moved;  ///< of all weights, in one step

  Step(const StepConfig& config, const PassOptions& options, bool runs = true)
      : Step(config.prepare(4, options).graph, options, runs) {}

  Step(const graph::Graph& graph, const PassOptions& options, bool runs)
      : plan(compile(graph, cpu(), {.passes = options})), state(graph, 7) {
    if (!runs) return;
    arena.reserve(plan.arena_bytes());
    plan.bind(state, arena);
    const std::vector<float> before = weights();
    feed(plan, 1);
    plan.run();
    moved = weights();
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] -= before[i];
  }

  std::vector<float> weights() const {
    std::vector<float> all;
    for (const State::Entry& entry : state.entries()) {
      if (entry.variable.role != graph::Role::weight) continue;
      const auto values = entry.tensor.span<float>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

  std::int64_t count(std::string_view op) const {
    return std::count_if(
        plan.kernels().begin(), plan.kernels().end(), [&](const KernelChoice& choice) {
          return plan.graph().node(choice.node).op == op;
        });
  }
};

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    apart += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(apart / size);
}

}  // namespace

TEST_CASE("attention: gradients of the fused plan are those of the unfused one up to rounding") {
  struct Case {
    std::string_view precision;
    DType dtype;
  };
  for (const Case& c : {Case{"policy: float32", DType::float32},
                        Case{"policy: mixed_bfloat16", DType::bfloat16},
                        Case{"policy: mixed_float16", DType::float16},
                        Case{"policy: mixed_bfloat16, grad_dtype: float32", DType::bfloat16},
                        Case{"policy: float32, rewrite: auto, target: bfloat16", DType::bfloat16},
                        Case{"policy: float32, rewrite: auto, target: float16", DType::float16}}) {
    for (const std::string_view fields :
         {"use_bias: true", "use_causal_mask: true", "value_dim: 5", "dropout: 0.25"}) {
      for (const bool padded : {false, true}) {
        CAPTURE(c.precision);
        CAPTURE(fields);
        CAPTURE(padded);
        const StepConfig config = encoder(c.precision, 50, fields, padded);
        const Step fused(config, {}), apart(config, without_fusion());
        CHECK(fused.count("FusedAttention") == 2);
        CHECK(fused.count("FusedAttentionGrad") == 2);
        CHECK(fused.count("BatchMatMulV2") == 0);
        CHECK(apart.count("BatchMatMulV2") == 12);
        // A gradient passes about ten ops that round once.
        const double allowed = 10 * epsilon(c.dtype);
        CHECK(distance(apart.moved, fused.moved) < allowed);
      }
    }
  }
}

TEST_CASE("attention: few steps, which blocks would pad to more than twice, stay matmuls") {
  for (const std::int64_t steps : {16, 22, 23}) {
    CAPTURE(steps);
    const Step step(encoder("policy: mixed_bfloat16", steps, "dropout: 0.5"), {}, false);
    CHECK(step.count("FusedAttention") == (steps < 23 ? 0 : 2));
  }
}

TEST_CASE("attention: memory per token is the same for 128 and 1,024 tokens") {
  for (const std::string_view policy : {"policy: float32", "policy: mixed_bfloat16"}) {
    CAPTURE(policy);
    for (const bool padded : {false, true}) {
      CAPTURE(padded);
      const auto per_token = [&](std::int64_t steps, const PassOptions& options) {
        const Step step(encoder(policy, steps, "use_bias: true", padded), options, false);
        return static_cast<double>(step.plan.arena_bytes()) / static_cast<double>(steps);
      };
      CHECK(per_token(1024, {}) < 1.3 * per_token(128, {}));
      // With a tensor of scores it grows with the number of tokens.
      CHECK(per_token(1024, without_fusion()) > 3 * per_token(128, without_fusion()));
    }
  }
}

}  // namespace halfstep::plan

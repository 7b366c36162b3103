// Fused launches of a device: the weights keep their bits without any of the passes that promise
// it, and the 16-bit copies of weights follow whoever writes them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_run/device.h"
#include "plan/plan.h"
#include "plan/steps.h"
#include "train/fixture.h"

namespace halfstep::train {
namespace {

constexpr std::int64_t k_batch = 24;

/// The hash of the weights and the loss after some steps.
struct Outcome {
  std::string weights;
  float loss = 0;
};

Outcome outcome_of(const graph::Graph& graph, const plan::PassOptions& passes) {
  plan::Lowering lowering;
  lowering.passes = passes;
  plan::Plan plan = plan::compile(graph, emulated(), lowering);
  plan::State state(graph, 7, emulated().memory);
  plan::Arena arena(emulated().memory);
  arena.reserve(plan.arena_bytes());
  plan.bind(state, arena);
  for (std::uint32_t step = 0; step < 3; ++step) {
    plan::feed(plan, step);
    plan.run();
  }
  return {state.weights_hash(), plan.read<float>("loss")};
}

/// Whether the copy of a weight in 16 bits is the weight, rounded.
bool copy_follows(const plan::State& state, const std::string& weight, DType dtype) {
  const plan::State::Derived& derived = state.derived(weight + " as " + std::string(name(dtype)));
  state.to_host();
  const Tensor& variable = state.tensor(weight);
  const Tensor expected(dtype, variable.shape()), found(dtype, variable.shape());
  convert(variable.view(), expected.view());
  emulated().memory->download(derived.buffer.data(), found.view().data, found.bytes());
  return std::memcmp(expected.view().data, found.view().data, found.bytes()) == 0;
}

}  // namespace

TEST_CASE("device: fused launches give the bits of separate ones") {
  for (const char* policy : {"float32", "mixed_float16", "mixed_bfloat16"}) {
    CAPTURE(policy);
    for (const auto make : {plan::step_graph, plan::conv_step_graph, plan::residual_step_graph}) {
      const graph::Graph graph = make(policy, k_batch);
      const Outcome whole = outcome_of(graph, {});
      for (const plan::Pass& pass : plan::passes()) {
        if (!pass.exact || pass.stage() != plan::PassStage::lowering) continue;
        CAPTURE(pass.name);
        const Outcome without = outcome_of(graph, {.skip = {std::string(pass.name)}});
        CHECK(without.weights == whole.weights);
        // Sums of 24 losses may have another order.
        CHECK(without.loss == doctest::Approx(whole.loss).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("device: 16-bit copies of weights follow steps, skipped steps, rollbacks and the host") {
  for (const char* overflow : {"skip", "retry"}) {
    CAPTURE(overflow);
    TinyRun tiny;
    tiny.precision = std::string("{policy: mixed_float16, loss_scale: {on_overflow: ") + overflow +
                     ", initial: 1e9, growth_steps: 3}}";
    Run run(tiny.spec(), {}, digits(), emulated());
    const std::vector<Tensor> start = run.state().weights();
    while (run.trainer().advance(3)) {
      CHECK(copy_follows(run.state(), "hidden/kernel", DType::float16));
      CHECK(copy_follows(run.state(), "logits/bias", DType::float16));
    }
    run.state().set_weights(start);
    plan::Plan& plan = run.session().plan(nn::Purpose::train, k_batch);
    plan.refresh();
    CHECK(copy_follows(run.state(), "hidden/kernel", DType::float16));
  }
}

}  // namespace halfstep::train

// Fused launches of a device: the weights keep their bits without any of the passes that promise
// it, and the 16-bit copies of weights follow whoever writes them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_run/device.h"
#include "graph/text.h"
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

/// Plans of equal graphs run once: most passes change few graphs, and a run takes long under
/// AddressSanitizer. `known`: by the text of a plan's graph.
Outcome outcome_of(const graph::Graph& graph,
                   const plan::PassOptions& passes,
                   std::map<std::string, Outcome>& known) {
  plan::Lowering lowering;
  lowering.passes = passes;
  plan::Plan plan = plan::compile(graph, emulated(), lowering);
  const auto [outcome, is_new] = known.try_emplace(graph::print_graph(plan.graph()));
  if (!is_new) return outcome->second;
  plan::State state(graph, 7, emulated().memory);
  plan::Arena arena(emulated().memory);
  arena.reserve(plan.arena_bytes());
  plan.bind(state, arena);
  for (std::uint32_t step = 0; step < 3; ++step) {
    plan::feed(plan, step);
    plan.run();
  }
  return outcome->second = {state.weights_hash(), plan.read<float>("loss")};
}

/// Whether the copy of a weight in float16 is the weight, rounded, and 0 in columns that a vector
/// of weights has not.
bool copy_follows(const plan::State& state, const std::string& weight, std::int64_t columns = 0) {
  const plan::State::Derived& derived = state.derived(
      weight + " as float16" + (columns == 0 ? "" : ", rows of " + std::to_string(columns)));
  state.to_host();
  const Tensor& variable = state.tensor(weight);
  const Shape shape = columns == 0 ? variable.shape() : Shape{columns};
  const Tensor expected(DType::float16, shape), found(DType::float16, shape);
  std::memset(expected.view().data, 0, expected.bytes());
  convert(variable.view(), {DType::float16, variable.shape(), expected.view().data});
  emulated().memory->download(derived.buffer.data(), found.view().data, found.bytes());
  return std::memcmp(expected.view().data, found.view().data, found.bytes()) == 0;
}

}  // namespace

TEST_CASE("device: fused launches give the bits of separate ones" * doctest::test_suite("slow")) {
  for (const char* policy : {"float32", "mixed_float16", "mixed_bfloat16"}) {
    CAPTURE(policy);
    for (const auto make : {plan::step_graph,
                            plan::conv_step_graph,
                            plan::residual_step_graph,
                            plan::transformer_step_graph}) {
      const graph::Graph graph = make(policy, k_batch);
      std::map<std::string, Outcome> known;
      // Where logits are padded depends on the passes before, and the library's algorithm on it.
      const Outcome whole = outcome_of(graph, {.skip = {"pad_logits"}}, known);
      CHECK(outcome_of(graph, {}, known).loss == doctest::Approx(whole.loss).epsilon(1e-2));
      for (const plan::Pass& pass : plan::passes()) {
        if (!pass.exact || pass.stage() != plan::PassStage::lowering) continue;
        CAPTURE(pass.name);
        const Outcome without =
            outcome_of(graph, {.skip = {"pad_logits", std::string(pass.name)}}, known);
        CHECK(without.weights == whole.weights);
        // Sums of 24 losses may have another order.
        CHECK(without.loss == doctest::Approx(whole.loss).epsilon(1e-5));
      }
      CHECK(known.size() > 3);
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
      CHECK(copy_follows(run.state(), "hidden/kernel"));
      CHECK(copy_follows(run.state(), "logits/bias", 16));
    }
    run.state().set_weights(start);
    plan::Plan& plan = run.session().plan(nn::Purpose::train, k_batch);
    plan.refresh();
    CHECK(copy_follows(run.state(), "hidden/kernel"));
  }
}

}  // namespace halfstep::train

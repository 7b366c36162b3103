// The packed copy of a variable follows the variable, whoever writes it.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <ostream>
#include <string_view>

#include "config/load.h"
#include "nn/step_graph.h"
#include "plan/plan.h"
#include "plan/steps.h"

namespace halfstep::plan {
namespace {

/// Dense layers that are worth packing for 64 samples, and not for 3.
graph::Graph dense_graph(std::int64_t batch, nn::Purpose purpose = nn::Purpose::train) {
  constexpr std::string_view k_text = R"(
data: {name: synthetic_digits}
model:
  input: [16, 16, 1]
  layers:
    - {type: flatten}
    - {type: dense, units: 96, activation: relu}
    - {type: dense, units: 64, activation: relu}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
precision: {policy: mixed_bfloat16}
loss: sparse_categorical_crossentropy
optimizer: {type: adam, learning_rate: 1e-2}
)";
  Diagnostics diagnostics;
  const config::RunSpec spec = config::parse_run_spec(
      config::load_text(std::string(k_text), "dense.yaml", diagnostics), diagnostics);
  const nn::StepSpec step_spec = nn::read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();
  const nn::DataShape data{{16, 16, 1}, DType::uint8, {}, DType::int32};
  return nn::build_step(step_spec, data, batch, purpose);
}

void copy(const State& from, State& to) {
  for (std::size_t i = 0; i < from.entries().size(); ++i) {
    const Tensor& tensor = from.entries()[i].tensor;
    std::memcpy(to.entries()[i].tensor.view().data, tensor.view().data, tensor.bytes());
  }
  to.to_device();
}

bool has(const Plan& plan, std::string_view op) {
  return std::any_of(plan.kernels().begin(), plan.kernels().end(), [&](const KernelChoice& choice) {
    return plan.graph().node(choice.node).op == op;
  });
}

/// Plans for 64 and 3 samples and for evaluation over one state.
struct DerivedPlans {
  State state{dense_graph(64), 7};
  Plan full = compile(dense_graph(64), cpu_by_rule());
  Plan tail = compile(dense_graph(3), cpu_by_rule());
  Plan evaluation = compile(dense_graph(64, nn::Purpose::evaluate), cpu_by_rule());
  Arena arena;

  DerivedPlans() {
    arena.reserve(std::max({full.arena_bytes(), tail.arena_bytes(), evaluation.arena_bytes()}));
    for (Plan* plan : {&full, &tail, &evaluation}) plan->bind(state, arena);
  }
};

float loss(Plan& plan, std::uint32_t seed) {
  feed(plan, seed);
  plan.run();
  return plan.read<float>("loss");
}

}  // namespace

TEST_CASE("derived: packed weights follow other plans, the host, and skipped steps") {
  DerivedPlans run;
  CHECK(has(run.full, "PackedVariable") == has(run.full, "PackedMatMul"));
  const std::vector<Tensor> start = run.state.weights();
  std::uint32_t seed = 0;
  for (const std::string_view step :
       {"full", "full", "tail", "full", "evaluate", "reset", "full", "reset", "evaluate", "tail"}) {
    CAPTURE(step);
    CAPTURE(++seed);
    // The results of the same step started from the variables alone.
    DerivedPlans anew;
    copy(run.state, anew.state);
    for (DerivedPlans* r : {&run, &anew}) {
      if (step == "reset") r->state.set_weights(start);
    }
    if (step == "reset") continue;
    const auto take = [&](DerivedPlans& r) {
      return loss(step == "full" ? r.full : step == "tail" ? r.tail : r.evaluation, seed);
    };
    CHECK(take(run) == take(anew));
    CHECK(run.state.full_hash() == anew.state.full_hash());
  }
}

TEST_CASE("derived: a step counts as a write to what it updates, and evaluation does not") {
  DerivedPlans run;
  const std::string weight = run.state.entries().front().variable.name;
  const std::uint64_t before = run.state.version(weight);
  loss(run.evaluation, 1);
  CHECK(run.state.version(weight) == before);
  loss(run.full, 1);
  CHECK(run.state.version(weight) > before);
  const std::uint64_t after = run.state.version(weight);
  run.state.set_weights(run.state.weights());
  CHECK(run.state.version(weight) > after);
}

}  // namespace halfstep::plan

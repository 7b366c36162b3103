// The precision of a step by the kernels that run it, and its floating-point operations, which
// fusions leave as they are.

#include "analysis/step_precision.h"

#include <doctest/doctest.h>

#include <ostream>

#include "config/load.h"
#include "config/run_spec.h"
#include "nn/step_graph.h"
#include "plan/plan.h"
#include "train/fixture.h"

namespace halfstep::analysis {
namespace {

/// Attention of 3 samples with 2 heads over 10 steps, and its training step.
graph::Graph attention_step() {
  Diagnostics diagnostics;
  const config::RunSpec spec = config::parse_run_spec(config::load_text(R"(
data: {name: synthetic_digits}
model:
  input: [10, 8, 1]
  layers:
    - {type: reshape, target_shape: [10, 8]}
    - {type: dense, units: 6}
    - {type: multi_head_attention, num_heads: 2, key_dim: 4, value_dim: 5}
    - {type: global_average_pooling1d}
    - {type: dense, units: 10}
    - {type: softmax}
loss: sparse_categorical_crossentropy
optimizer: {type: sgd, learning_rate: 0.1}
)",
                                                                        "attention.yaml",
                                                                        diagnostics),
                                                      diagnostics);
  const nn::StepSpec step = nn::read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();
  const nn::DataShape data{{10, 8, 1}, DType::uint8, {}, DType::int32};
  return nn::build_step(step, data, 3, nn::Purpose::train);
}

TEST_CASE("precision: a run on the reference kernels reports its sums in float64") {
  train::Run fast(train::TinyRun().spec());
  CHECK(precision_of(fast.session()).accumulate_dtype == "float32");
  train::Run plain(train::TinyRun().spec(), {}, train::digits(), backend::cpu_reference());
  const Precision block = precision_of(plain.session());
  CHECK(block.accumulate_dtype == "float64");
  for (const OpInfo& op : block.ops) {
    if (op.kernel == "reference/matmul") CHECK(op.accumulate_dtype == "float64");
    CHECK(op.tensor_core == false);
  }
}

TEST_CASE("flops: attention in blocks counts the matmuls that it replaces") {
  const graph::Graph step = attention_step();
  const auto counted = [&](bool fuses) {
    plan::Lowering lowering;
    if (!fuses) lowering.passes.skip.emplace("fuse_attention");
    return flops(plan::compile(step, backend::cpu_backend(1), lowering));
  };
  CHECK(counted(true) == counted(false));
}

}  // namespace
}  // namespace halfstep::analysis

#pragma once
// Step graphs of a small model with everything in it that a plan treats in its own way.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "nn/step_graph.h"
#include "plan/plan.h"
#include "plan/state.h"

namespace halfstep::plan {

/// The config of a model on 8x8 images, read.
struct StepConfig {
  explicit StepConfig(const std::string& text);

  /// The training step after the passes of all stages before lowering.
  Prepared prepare(std::int64_t batch, const PassOptions& options = {}) const;

  config::RunSpec spec;
  nn::StepSpec step_spec;
  nn::DataShape data{{8, 8, 1}, DType::uint8, {}, DType::int32};
};

/// A convolution, batch normalization, pooling, dropout and two dense layers on 8x8 images under
/// a policy, trained with Adam and clipping.
graph::Graph step_graph(std::string_view policy, std::int64_t batch);

/// Two convolutions with a Relu each, the second one pooled, and a dense layer.
graph::Graph conv_step_graph(std::string_view policy, std::int64_t batch);
/// A residual block of convolutions, one with an L2 penalty, and batch normalizations, without a
/// 16-bit matmul.
graph::Graph residual_step_graph(std::string_view policy, std::int64_t batch);
/// A block of a transformer on 16 patches, with AdamW and a schedule of the learning rate.
graph::Graph transformer_step_graph(std::string_view policy, std::int64_t batch);

/// The variables of a model before the first of three steps, and after the last.
struct Trained {
  std::vector<State::Entry> before, after;
};

/// Trains a model that starts from one state for all, three steps of as many batches.
Trained train(const StepConfig& config,
              std::int64_t batch,
              const backend::Backend& backend,
              const PassOptions& options = {});

/// Elements of all variables that differ in bits; two that are no numbers do not.
std::int64_t different_elements(const Trained& a, const Trained& b);

/// The distance between the weights of two runs from the same start, relative to the distance that
/// the first run moved.
double relative_distance(const Trained& a, const Trained& b);

/// Fills the inputs of a plan with images and labels that `seed` stands for.
void feed(Plan& plan, std::uint32_t seed);

/// One thread.
const backend::Backend& cpu();
/// The same without measured times: packing follows from shapes alone, on every processor.
const backend::Backend& cpu_by_rule();

}  // namespace halfstep::plan

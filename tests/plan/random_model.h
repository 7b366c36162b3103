#pragma once
// Random models on 8x8 images, for tests that compare two ways to run one step.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "plan/steps.h"

namespace halfstep::plan {

/// Three to nine layers of images, sequences and vectors, merged where shapes agree, some with a
/// dtype of their own, and a classifier of ten classes behind them; with a random precision,
/// optimizer and batch size.
struct RandomModel {
  std::int64_t batch;
  std::string text;  ///< the config

  /// The same model for the same arguments. `optimizer`: its section instead of a random one.
  explicit RandomModel(std::uint32_t seed, std::string_view optimizer = "");

  /// Whether weights, activations and gradients are float32 everywhere.
  bool in_float32() const;
};

/// Calls test(model) for each seed in [first, last], or in the range that the environment variable
/// HALFSTEP_RANDOM_MODELS="FIRST LAST" gives; an exception of a model fails a check and ends it.
/// `optimizer` as above.
void for_random_models(std::uint32_t first,
                       std::uint32_t last,
                       std::string_view optimizer,
                       const std::function<void(const RandomModel&)>& test);

/// Trains without the passes that are exact, all together, and checks that no bit of a variable
/// differs; where one does, names the pass.
void check_exact_passes(const RandomModel& model, const backend::Backend& backend);

/// Whether three steps on a backend move the weights elsewhere than the CPU's reference kernels do:
/// by more than 1e-4 of their way in float32, 0.03 in 16 bits. Some models are, because a rounding
/// may move a value over the bend of an activation or make another one the maximum of a window: 4
/// of 400 with the kernels for AVX2.
bool trains_apart(const RandomModel& model, const backend::Backend& backend);

}  // namespace halfstep::plan

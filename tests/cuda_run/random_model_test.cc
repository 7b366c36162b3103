// Random models on the emulated device; the second test also runs on a GPU, where
// HALFSTEP_CUDA_PLUGIN names its plugin.

#include "plan/random_model.h"

#include <doctest/doctest.h>

#include "cuda_run/device.h"

namespace halfstep::train {

TEST_CASE("device: exact passes change no bit of random models" * doctest::test_suite("slow")) {
  plan::for_random_models(1, 40, "", [](const plan::RandomModel& model) {
    plan::check_exact_passes(model, emulated());
  });
}

TEST_CASE("device: random models train as on the reference kernels" * doctest::test_suite("slow")) {
  int models = 0, apart = 0;
  plan::for_random_models(
      1, 40, "type: sgd, learning_rate: 0.05", [&](const plan::RandomModel& model) {
        ++models;
        apart += plan::trains_apart(model, emulated_or_named());
      });
  CHECK(apart * 10 <= models);
}

}  // namespace halfstep::train

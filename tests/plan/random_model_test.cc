// Random models: no pass that promises it changes a bit of a step, the kernels train as the
// reference kernels do, and threads change nothing from run to run.

#include "plan/random_model.h"

#include <doctest/doctest.h>

namespace halfstep::plan {

TEST_CASE("random models: exact passes change no bit of three steps" *
          doctest::test_suite("slow")) {
  for_random_models(1, 40, "", [](const RandomModel& model) {
    check_exact_passes(model, cpu_by_rule());
    check_exact_passes(model, cpu());
  });
}

TEST_CASE("random models: kernels train as the reference kernels do" *
          doctest::test_suite("slow")) {
  int models = 0, apart = 0;
  for_random_models(1, 40, "type: sgd, learning_rate: 0.05", [&](const RandomModel& model) {
    ++models;
    apart += trains_apart(model, cpu());
  });
  CHECK(apart * 10 <= models);
}

TEST_CASE("random models: two runs on three threads have the same bits" *
          doctest::test_suite("slow")) {
  const backend::Backend threads = backend::cpu_backend(3);
  for_random_models(1, 40, "", [&](const RandomModel& model) {
    const StepConfig config(model.text);
    const Trained one = train(config, model.batch, threads);
    CHECK(different_elements(one, train(config, model.batch, threads)) == 0);
  });
  backend::cpu_backend(1);  // which the other tests expect
}

}  // namespace halfstep::plan

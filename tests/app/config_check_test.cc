// `config check` finds the errors that `train` would report, without any data.

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

/// Both commands on the same config; the data are not needed to refuse it.
void check_both_refuse(const SmallRun& run, std::string_view message) {
  const TemporaryDirectory directory;
  write_config(directory, run);
  const Finished check = halfstep({"config", "check", "run.yaml"}, directory.path());
  const Finished trained = train(directory, "run");
  CAPTURE(check.err);
  CAPTURE(trained.err);
  CHECK(check.exit_code == 2);
  CHECK(trained.exit_code == 2);
  CHECK(holds(check.err, message));
  CHECK(check.err == trained.err);
}

}  // namespace

TEST_CASE("config check: augmentation behind trainable layers is refused as train refuses it") {
  SmallRun run;
  run.layers = R"(
    - {type: reshape, target_shape: [28, 28, 1]}
    - {type: conv2d, filters: 4, kernel_size: 3, name: conv}
    - {type: random_translation, height_factor: 0.1, width_factor: 0.1, name: moved}
    - {type: flatten}
    - {type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  check_both_refuse(run,
                    "RandomTranslation has no gradient, and layers before it are to be trained");
}

TEST_CASE("config check: a model without weights and list edits that conflict are refused") {
  SmallRun run;
  run.layers = "\n    - {type: flatten}\n    - {type: softmax}\n";
  check_both_refuse(run, "nothing to train");
  run = {};
  run.precision = "{rewrite: auto, lists: {allow: {add: [Softmax]}}}";
  check_both_refuse(run, "Softmax is on the lists allow and infer");
}

TEST_CASE("config check: what can be trained is ok, with the warnings of the step") {
  const TemporaryDirectory directory;
  SmallRun run;
  for (const std::string_view precision :
       {"{policy: mixed_float16}", "{rewrite: auto}", "{rewrite: auto, target: float16}"}) {
    run.precision = precision;
    write_config(directory, run);
    const Finished end = halfstep({"config", "check", "run.yaml", "--strict"}, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
    CHECK(holds(end.out, "run.yaml: ok"));
  }
  run.precision = "{rewrite: auto, target: float16, rewrite_rules: 2.20+}";
  write_config(directory, run);
  CHECK(holds(halfstep({"config", "check", "run.yaml"}, directory.path()).err, "W211"));
  // Whether a loss scale has a use is decided by the dtypes after the rewrite.
  for (const auto& [target, idle] :
       {std::pair{"", true}, {", target: bfloat16", true}, {", target: float16", false}}) {
    run.precision = "{rewrite: auto, loss_scale: dynamic" + std::string(target) + "}";
    write_config(directory, run);
    const Finished end =
        halfstep({"config", "check", "run.yaml", "--device", "cpu"}, directory.path());
    CAPTURE(end.err);
    CHECK(holds(end.err, "W106") == idle);
    CHECK(end.exit_code == 0);
  }
  run = {};
  write_config(directory, run);
  // Float targets of several outputs, and events: no class numbers are assumed.
  for (const std::string_view loss : {"mean_squared_error", "binary_crossentropy"}) {
    CAPTURE(loss);
    const Finished end = halfstep({"config",
                                   "check",
                                   "run.yaml",
                                   "--set",
                                   "loss=" + std::string(loss),
                                   "--set",
                                   "precision.rewrite=none"},
                                  directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
  }
}

}  // namespace halfstep::test

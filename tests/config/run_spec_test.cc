#include "config/run_spec.h"

#include <doctest/doctest.h>

#include "config/merge.h"
#include "config/outputs.h"
#include "config/printer.h"
#include "support.h"

namespace halfstep::config::testing {
namespace {

constexpr std::string_view k_small =
    "data: {name: mnist}\n"
    "model: {input: [784], layers: [{type: dense, units: 10}]}\n"
    "loss: mean_squared_error\n"
    "optimizer: sgd\n";

RunSpec small_with(std::string_view more) {
  return spec_of(node_of(std::string(k_small) + std::string(more)));
}

std::vector<std::string> warning_codes(const RunSpec& spec) {
  std::vector<std::string> codes;
  for (const Warning& warning : spec.warnings) codes.push_back(warning.code);
  return codes;
}

}  // namespace

TEST_CASE("run spec: the guide's config is read in full") {
  const RunSpec spec = spec_of(node_of(contents(folder() / "good" / "guide.yaml")));
  CHECK(spec.name == "keras-guide");
  CHECK(spec.seed == 1234);
  CHECK(spec.data.format == DataFormat::npz);
  CHECK(spec.data.path == "data/mnist.npz");
  CHECK(!spec.data.sha256);
  CHECK(spec.data.validation_split == 0.2);
  CHECK(spec.data.scale == 1.0 / 255.0);
  CHECK(spec.model.sequential());
  CHECK(spec.model.input == std::vector<std::int64_t>{784});
  CHECK(spec.model.layers.items.size() == 4);
  CHECK(spec.precision.policy == "mixed_float16");
  CHECK(spec.precision.loss_scale.mode == LossScaleMode::dynamic);
  CHECK(spec.precision.loss_scale.min == 1.0);
  CHECK(!spec.precision.loss_scale.max);
  CHECK(spec.precision.loss_scale.max_consecutive_skips == 50);
  CHECK(spec.loss.type == "sparse_categorical_crossentropy");
  CHECK(spec.optimizer.type == "rmsprop");
  CHECK(spec.optimizer.node.find("rho")->text == "0.9");
  CHECK(spec.training.batch_size == 8192);
  CHECK(spec.training.checkpoint_every.steps == 500);
  CHECK(spec.report.formats == std::vector<std::string>{"json", "csv"});
  CHECK(spec.report.numerics.mode == NumericsMode::sample);
  CHECK(spec.warnings.empty());
}

TEST_CASE("run spec: the graph's config is read in full") {
  const RunSpec spec = spec_of(node_of(contents(folder() / "good" / "graph.yaml")));
  CHECK(!spec.model.sequential());
  CHECK(spec.model.inputs == std::vector<NamedExtents>{{"image", {28, 28, 1}}});
  CHECK(spec.model.nodes.entries.size() == 7);
  CHECK(spec.model.outputs == std::vector<std::string>{"out"});
  CHECK(spec.precision.rewrite == Rewrite::automatic);
  CHECK(spec.precision.target == DType::bfloat16);
  CHECK(spec.precision.rewrite_rules == RewriteRules::tensorflow_2_19);
  CHECK(spec.precision.lists.infer.remove == std::vector<std::string>{"AddV2"});
  REQUIRE(spec.precision.overrides.size() == 1);
  CHECK(spec.precision.overrides[0].match == "re:^n[0-9]+$");
  REQUIRE(spec.training.early_stopping);
  CHECK(spec.training.early_stopping->patience == 2);
  CHECK(spec.device.kind == DeviceKind::cpu);
}

TEST_CASE("run spec: words and numbers stand for maps") {
  const RunSpec spec = spec_of(node_of(contents(folder() / "good" / "shorthand.yaml")));
  CHECK(spec.precision.loss_scale.mode == LossScaleMode::fixed);
  CHECK(spec.precision.loss_scale.initial == 1024);
  CHECK(spec.report.numerics.mode == NumericsMode::full);
  CHECK(spec.device.kind == DeviceKind::cuda);
  CHECK(spec.device.index == 1);
  CHECK(spec.metrics == std::vector<std::string>{"accuracy"});
  CHECK(spec.data.test_samples == 100);
  CHECK(spec.slurm.signal == SlurmSignal::term);
  CHECK(spec.model.layers.items[1].find("name")->text == "yes");
  CHECK(small_with("precision: {loss_scale: dynamic}\n").precision.loss_scale.mode ==
        LossScaleMode::dynamic);
}

TEST_CASE("run spec: algorithms on a GPU are measured when that is asked for") {
  CHECK(small_with("device: cuda\n").device.autotune == Autotune::heuristic);
  CHECK(small_with("device: {kind: cuda, autotune: measure}\n").device.autotune ==
        Autotune::measure);
}

TEST_CASE("run spec: print reads back to the same, in every form") {
  for (const std::filesystem::path& file : files_of("good")) {
    CAPTURE(file.filename().string());
    const RunSpec spec = spec_of(node_of(contents(file)));
    for (const bool minimal : {false, true}) {
      for (const bool origins : {false, true}) {
        CAPTURE(minimal);
        CAPTURE(origins);
        const std::string text = print(spec, {.minimal = minimal, .origins = origins});
        CAPTURE(text);
        const RunSpec back = spec_of(node_of(text));
        CHECK(same(to_node(back), to_node(spec)));
        CHECK(print(back) == print(spec));
        CHECK(config_hash(back) == config_hash(spec));
      }
    }
  }
}

TEST_CASE("run spec: the minimal print holds what was asked for and no default") {
  const RunSpec spec = small_with("training: {epochs: 5, batch_size: 32}\nseed: 0\n");
  CHECK(print(spec, {.minimal = true}) ==
        "data:\n  name: mnist\n"
        "model:\n  input: [784]\n  layers:\n    - type: dense\n      units: 10\n"
        "loss: mean_squared_error\n"
        "optimizer: sgd\n"
        "training:\n  epochs: 5\n");
}

TEST_CASE("run spec: a fixed scale is printed even where it equals the dynamic one's start") {
  const RunSpec spec = small_with("precision: {loss_scale: 32768}\n");
  const std::string text = print(spec, {.minimal = true});
  CHECK(text.find("initial: 32768") != std::string::npos);
  CHECK(spec_of(node_of(text)).precision.loss_scale.initial == 32768);
}

TEST_CASE("run spec: the full print is one line a value, with defaults") {
  const std::string text = print(small_with("precision: {loss_scale: auto}\n"));
  for (const std::string_view line : {"seed: 0",
                                      "  scale: null",
                                      "  format: null",
                                      "  input: [784]",
                                      "    mode: auto",
                                      "    initial: null",
                                      "metrics: [mean_absolute_error]",
                                      "  early_stopping: null",
                                      "  signal: SIGUSR1"}) {
    CAPTURE(line);
    CHECK(text.find("\n" + std::string(line) + "\n") != std::string::npos);
  }
  CHECK(text.find("outputs") == std::string::npos);
}

TEST_CASE("run spec: origins name the place of every value") {
  Diagnostics diagnostics;
  Node node = load_text(
      std::string(k_small) + "training:\n  epochs: 5\ndevice: cpu\n", "run.yaml", diagnostics);
  apply(node, Override::parse(Override::Kind::set, "--set", "seed=3"), diagnostics);
  const RunSpec spec = spec_of(node);
  CHECK(spec.where("training.epochs") == Where{"run.yaml", 6, 11, "training.epochs"});
  CHECK(spec.where("seed") == Where{"--set seed=3", 0, 0, "seed"});
  CHECK(spec.where("training.keep") == Where{"", 0, 0, "training.keep"});
  CHECK(spec.where("device.kind") == Where{"run.yaml", 7, 9, "device.kind"});
  CHECK(spec.where("optimizer.type").line == 4);
  const std::string text = print(spec, {.origins = true});
  for (const std::string_view line : {"seed: 3  # --set seed=3",
                                      "  epochs: 5  # run.yaml:6",
                                      "  keep: 3  # default",
                                      "  kind: cpu  # run.yaml:7",
                                      "      units: 10  # run.yaml:2",
                                      "optimizer: sgd  # run.yaml:4"}) {
    CAPTURE(line);
    CHECK(text.find("\n" + std::string(line) + "\n") != std::string::npos);
  }
}

TEST_CASE("run spec: a data path starts from its config file, or from the working directory") {
  Diagnostics diagnostics;
  std::string text(k_small);
  text.replace(text.find("name: mnist"), 11, "format: npz, path: ../d/x.npz");
  Node node = load_text(text, "conf/run.yaml", diagnostics);
  CHECK(spec_of(node).data.resolved_path() == "d/x.npz");
  const std::string moved = print(spec_of(node), {.absolute_paths = true});
  CHECK(moved.find("path: " + (std::filesystem::current_path() / "d/x.npz").string()) !=
        std::string::npos);
  apply(node, Override::parse(Override::Kind::set, "--set", "data.path=y.npz"), diagnostics);
  CHECK(spec_of(node).data.resolved_path() == "y.npz");
  apply(node, Override::parse(Override::Kind::set, "--set", "data.path=/a/y.npz"), diagnostics);
  CHECK(spec_of(node).data.resolved_path() == "/a/y.npz");
}

TEST_CASE("run spec: the losses and metrics of several outputs are printed by their names") {
  const RunSpec spec = spec_of(node_of(contents(folder() / "good" / "outputs.yaml")));
  CHECK(spec.model.outputs == std::vector<std::string>{"digit.softmax", "mean"});
  Diagnostics diagnostics;
  const std::vector<TrainedOutput> outputs = trained_outputs(spec, diagnostics);
  CHECK(diagnostics.empty());
  REQUIRE(outputs.size() == 2);
  CHECK(outputs[0].key == "digit_softmax");
  CHECK(outputs[0].loss.type == "sparse_categorical_crossentropy");
  CHECK(outputs[0].loss_weight == 2);
  CHECK(outputs[1].loss.node.find("delta")->text == "0.5");
  CHECK(outputs[1].loss_weight == 0.25);
  CHECK(spec.metrics == std::vector<std::string>{"digit_softmax_loss",
                                                 "mean_loss",
                                                 "digit_softmax_accuracy",
                                                 "digit_softmax_top_3_accuracy",
                                                 "mean_mean_absolute_error"});
  for (const bool minimal : {false, true}) {
    const RunSpec again = spec_of(node_of(print(spec, {.minimal = minimal})));
    CHECK(again.metrics == spec.metrics);
    CHECK(config_hash(again) == config_hash(spec));
  }
  // Without metrics, those that fit the losses.
  Node node = node_of(contents(folder() / "good" / "outputs.yaml"));
  std::erase_if(node.entries, [](const Node::Entry& e) { return e.key == "metrics"; });
  CHECK(spec_of(node).metrics == std::vector<std::string>{"digit_softmax_loss",
                                                          "mean_loss",
                                                          "digit_softmax_accuracy",
                                                          "mean_mean_absolute_error"});
}

TEST_CASE("run spec: the hash follows what is asked for, not how it is written") {
  const RunSpec spec = small_with("");
  CHECK(config_hash(spec).size() == 64);
  CHECK(config_hash(small_with("seed: 0\ntraining: {epochs: 1.0}\n")) == config_hash(spec));
  CHECK(config_hash(small_with("seed: 1\n")) != config_hash(spec));
}

TEST_CASE("run spec: warnings are for what is allowed and probably not meant") {
  struct Case {
    std::string_view more;
    std::vector<std::string> want;
  };
  static const Case k_cases[] = {
      {"", {}},
      {"precision: {target: float16}\n", {"W101"}},
      {"precision: {rewrite_rules: 2.20+}\n", {"W101"}},
      {"precision: {rewrite_rules: 2.19}\n", {}},
      {"precision: {rewrite: auto, rewrite_rules: 2.20+}\n", {}},
      {"precision: {lists: {deny: {add: [Relu]}}}\n", {"W101"}},
      {"precision: {rewrite: auto, target: float16}\n", {}},
      {"precision: {policy: bfloat16}\n", {"W102"}},
      {"precision: {policy: mixed_bfloat16}\n", {}},
      {"precision: {loss_scale: {mode: none, initial: 8}}\n", {"W103"}},
      {"precision: {loss_scale: {mode: none, growth_steps: 8, max: 65536}}\n", {"W103", "W103"}},
      {"precision: {loss_scale: {mode: fixed, initial: 8, on_overflow: retry}}\n", {"W103"}},
      {"precision: {loss_scale: {mode: fixed, initial: 8, growth_steps: 2000}}\n", {}},
      {"precision: {loss_scale: 1000}\n", {"W104"}},
      {"precision: {loss_scale: {initial: 0.25}}\n", {}},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.more);
    CHECK(warning_codes(small_with(c.more)) == c.want);
  }
}

TEST_CASE("run spec: what is printed reads back as the same, and warns of nothing new") {
  for (const std::string_view more : {"",
                                      "precision: {loss_scale: {mode: none}}\n",
                                      "precision: {rewrite: auto, target: float16}\n"}) {
    CAPTURE(more);
    const RunSpec spec = small_with(more);
    const std::string text = print(spec);
    const RunSpec again = spec_of(node_of(text));
    CHECK(print(again) == text);
    CHECK(again.warnings.size() == spec.warnings.size());
    // A scale that depends on the data stays open.
    CHECK(again.data.scale == spec.data.scale);
  }
}

TEST_CASE("target: a metric, a value, and which way is better") {
  struct Case {
    std::string_view text, metric;
    double value;
    bool at_most;
  };
  static constexpr Case k_cases[] = {
      {"val_accuracy=0.97", "val_accuracy", 0.97, false},
      {"val_accuracy>=97e-2", "val_accuracy", 0.97, false},
      {"val_loss=0.1", "val_loss", 0.1, true},
      {"mean_squared_error=1/4", "mean_squared_error", 0.25, true},
      {"accuracy<=0.5", "accuracy", 0.5, true},
      {"loss>=2", "loss", 2, false},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.text);
    const std::optional<Target> target = parse_target(c.text);
    REQUIRE(target);
    CHECK(target->metric == c.metric);
    CHECK(target->value == c.value);
    CHECK(target->at_most == c.at_most);
    CHECK(target->reached(c.value));
    CHECK(target->reached(c.value + 1) == !c.at_most);
  }
  for (const std::string_view text : {"",
                                      "accuracy",
                                      "=0.5",
                                      "accuracy=",
                                      "accuracy=x",
                                      "a b=1",
                                      "accuracy==1",
                                      "accuracy=nan"}) {
    CAPTURE(text);
    CHECK(!parse_target(text));
  }
}

}  // namespace halfstep::config::testing

// Mistakes that are reported before anything is trained, and flags that are honoured or refused.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <ostream>
#include <string_view>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

SmallRun scores() {
  SmallRun run;
  run.layers = "\n    - {type: dense, units: 10, name: logits}\n";
  return run;
}

}  // namespace

TEST_CASE("strict: logits in a loss of probabilities warn, and end every command with --strict") {
  const TemporaryDirectory directory;
  write_config(directory, scores());
  const Finished warned = halfstep({"config", "check", "run.yaml"}, directory.path());
  CHECK(warned.exit_code == 0);
  CHECK(holds(warned.err, "W113"));
  CHECK(holds(warned.err, "from_logits: true"));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"config", "check"},
        {"train", "--run-dir", "run"},
        {"bench", "--steps", "2", "--repeat", "1", "--run-dir", "run"},
        {"compare", "--seeds", "1", "--run-dir", "run"},
        {"explain"}}) {
    CAPTURE(command[0]);
    std::vector<std::string> words = command;
    words.insert(words.end(), {"run.yaml", "--strict"});
    const Finished end = halfstep(words, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(holds(end.err, "error: W113"));
    CHECK(end.out.empty());
  }
  CHECK(!fs::exists(directory.file("run")));
}

TEST_CASE("quiet: warnings are printed, progress is not") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.precision = "{policy: float32, loss_scale: 1024}";
  write_config(directory, run);
  const Finished said = train(directory, "said");
  const Finished quiet = train(directory, "quiet", {"-q"});
  CAPTURE(quiet.err);
  CHECK(quiet.exit_code == 0);
  CHECK(holds(quiet.err, "warning: W106"));
  CHECK(holds(said.err, "epoch 1/"));
  CHECK_FALSE(holds(quiet.err, "epoch 1/"));
}

TEST_CASE("weights in 16 bits: a layer that has them is warned of, one without weights is not") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.layers = R"(
    - {type: flatten, dtype: float16}
    - {type: dense, units: 16, name: hidden}
    - {type: dropout, rate: 0.25, dtype: float16}
    - {type: dense, units: 10, name: logits}
    - {type: softmax, dtype: float32}
)";
  write_config(directory, run);
  const auto checked = [&](const std::string& policy) {
    return halfstep({"config", "check", "run.yaml", "--policy", policy}, directory.path()).err;
  };
  CHECK_FALSE(holds(checked("float32"), "W202"));
  CHECK(holds(checked("bfloat16"), ": layer 'hidden' stores its weights in bfloat16"));
}

TEST_CASE("metrics: one that no epoch has is refused before anything is trained") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.data = "{name: synthetic_digits, train_samples: 512, test_samples: 128}";
  run.training =
      "{epochs: 5, batch_size: 64, early_stopping: {monitor: val_loss, patience: 2}, "
      "keep_best: acuracy}";
  write_config(directory, run);
  const Finished end = train(directory, "run", {"--target", "val_accuracy=0.9"});
  CAPTURE(end.err);
  CHECK(end.exit_code == 2);
  CHECK(holds(end.err, "training.early_stopping.monitor: error: no epoch has a metric 'val_loss'"));
  CHECK(holds(end.err, "training.keep_best: error: no epoch has a metric 'acuracy'"));
  CHECK(holds(end.err, "--target: training.target: error: no epoch has a metric 'val_accuracy'"));
  CHECK(holds(end.err, "one of loss, accuracy"));
  CHECK(!fs::exists(directory.file("run")));
}

TEST_CASE("config: mistakes in sections, model and metrics are all told at once") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.layers = "\n    - {type: dens, units: 10}\n";
  run.optimizer = "{type: adamm}";
  run.training = "{epochs: 0}";
  write_config(directory, run);
  const Finished end = halfstep({"config", "check", "run.yaml"}, directory.path());
  CAPTURE(end.err);
  CHECK(end.exit_code == 2);
  CHECK(holds(end.err, "unknown layer type 'dens'"));
  CHECK(holds(end.err, "did you mean 'adam'? one of adadelta, adagrad, adam, adamax, "));
  CHECK(holds(end.err, "training.epochs: error: must be at least 1, got 0"));
}

TEST_CASE("bench: without the data it measures on samples of the model's shapes and says so") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.data = "{format: npz, path: absent.npz, validation_split: 0.25}";
  write_config(directory, run);
  std::vector<std::string> words{"bench", "run.yaml", "--json"};
  for (const char* flag : {"--warmup=1", "--steps=3", "--repeat=1", "--threads=1"}) {
    words.emplace_back(flag);
  }
  const Finished end = halfstep(words, directory.path());
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(holds(end.err, "warning: W303 run.yaml"));
  CHECK(holds(end.err, "the data is not available"));
  words.emplace_back("--strict");
  CHECK(halfstep(words, directory.path()).exit_code == 2);
  words.emplace_back("--synthetic");
  CHECK(halfstep(words, directory.path()).exit_code == 0);
  const Json report = Json::parse(end.out);
  CHECK(report.at("bench").at("data") == "random");
  CHECK(holds(report.at("notes").dump(), "random samples of the model's shapes"));
}

TEST_CASE("model summary: each layer has the shape of its output, not of a value within it") {
  const TemporaryDirectory directory;
  write_text(directory.file("run.yaml"),
             "data: {name: synthetic_digits, train_samples: 64, test_samples: 8}\n"
             "model:\n  input: [28, 28, 1]\n  layers:\n"
             "    - {type: conv2d, filters: 4, kernel_size: 3, name: conv}\n"
             "    - {type: batch_normalization, name: norm}\n"
             "    - {type: flatten, name: flat}\n"
             "    - {type: reshape, target_shape: [26, 104], name: steps}\n"
             "    - {type: layer_normalization, name: rows}\n"
             "    - {type: multi_head_attention, num_heads: 2, key_dim: 4, name: heads}\n"
             "    - {type: flatten, name: again}\n"
             "    - {type: dense, units: 10, activation: softmax, name: out}\n"
             "loss: sparse_categorical_crossentropy\noptimizer: sgd\n"
             "training: {batch_size: 16}\n");
  const Finished end = halfstep({"model", "summary", "run.yaml", "--json"}, directory.path());
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  const Json layers = Json::parse(end.out).at("layers");
  CHECK(layers.at(0).at("output") == "[16, 26, 26, 4]");
  CHECK(layers.at(1).at("output") == "[16, 26, 26, 4]");
  CHECK(layers.at(2).at("output") == "[16, 2704]");
  CHECK(layers.at(3).at("output") == "[16, 26, 104]");
  CHECK(layers.at(4).at("output") == "[16, 26, 104]");
  CHECK(layers.at(5).at("output") == "[16, 26, 104]");
  CHECK(layers.at(7).at("output") == "[16, 10]");
  CHECK(layers.at(7).at("output_dtype") == "float32");
}

TEST_CASE("model summary: a layer of several outputs has a line for the shape of each") {
  const TemporaryDirectory directory;
  write_text(directory.file("run.yaml"),
             "data: {name: synthetic_digits, train_samples: 64, test_samples: 8}\n"
             "model:\n  inputs: {rows: [28, 28]}\n  nodes:\n"
             "    encoder: {type: lstm, units: 5, return_sequences: true, return_state: true, "
             "from: rows}\n"
             "    decoder: {type: lstm, units: 5, from: [encoder, encoder:1, encoder:2]}\n"
             "    out: {type: dense, units: 10, from: decoder}\n"
             "  outputs: [out]\n"
             "loss: {type: sparse_categorical_crossentropy, from_logits: true}\n"
             "optimizer: sgd\ntraining: {batch_size: 16}\n");
  Finished end = halfstep({"model", "summary", "run.yaml", "--json"}, directory.path());
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  const Json layers = Json::parse(end.out).at("layers");
  CHECK(layers.at(0).at("output") == "[16, 28, 5]");
  CHECK(layers.at(0).at("further_outputs") == Json::array({"[16, 5]", "[16, 5]"}));
  CHECK(layers.at(1).at("further_outputs") == Json::array());
  end = halfstep({"model", "summary", "run.yaml"}, directory.path());
  const auto line = [&](std::string name, const std::string& shape) {
    name.resize(45, ' ');
    return holds(end.out, name + " " + shape + "\n");
  };
  CHECK(line("encoder:1", "[16, 5]"));
  CHECK(line("encoder:2", "[16, 5]"));
  CHECK(!holds(end.out, "encoder:3"));
  CHECK(!holds(end.out, "decoder:1"));
}

TEST_CASE("explain: an architecture that does not exist is refused") {
  const TemporaryDirectory directory;
  write_config(directory);
  for (const std::string arch : {"sm_9000", "sm_91", "sm_x", "avx1024"}) {
    CAPTURE(arch);
    const Finished end = halfstep({"explain", "run.yaml", "--arch", arch}, directory.path());
    CHECK(end.exit_code == 2);
    CHECK(holds(end.err, "unknown architecture '" + arch + "'"));
    CHECK(holds(end.err, "sm_90"));
  }
  CHECK(halfstep({"explain", "run.yaml", "--arch", "sm_90a"}, directory.path()).exit_code == 0);
}

TEST_CASE("command line: help shows one CONFIG, and a second one is told where it belongs") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished help = halfstep({"train", "--help"}, directory.path());
  CHECK(holds(help.out, "[CONFIG]"));
  CHECK(!holds(help.out, "CONFIG..."));
  CHECK(!holds(help.out, "CONFIG TEXT ..."));
  const Finished end = halfstep({"train", "run.yaml", "run.yaml"}, directory.path());
  CHECK(end.exit_code == 2);
  CHECK(holds(end.err, "further configs follow -c"));
}

TEST_CASE("command line: a flag that a command does not honour is not accepted") {
  const TemporaryDirectory directory;
  write_config(directory);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"config", "check", "run.yaml", "--json"},
        {"config", "show", "run.yaml", "--run-dir", "x"},
        {"predict", "run", "x.png", "--progress", "none"},
        {"predict", "run", "x.png", "--seed", "1"},
        {"model", "export", "run", "--to", "w.npz", "--batch-size", "8"},
        {"eval", "run", "--progress", "none"},
        {"verify-resume", "run.yaml", "--run-dir", "x"},
        {"compare", "run.yaml", "--numerics", "full"},
        {"explain", "run.yaml", "--mode", "bf16"},
        {"explain", "--graph", "g.txt", "--policy", "float32"}}) {
    CAPTURE(words[0]);
    const Finished end = halfstep(words, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(end.out.empty());
  }
  const Finished strict = halfstep({"explain", "--graph", "g.txt", "--strict"}, directory.path());
  CHECK(strict.exit_code == 2);
  CHECK(holds(strict.err, "--strict: error: does not apply with --graph"));
  CHECK(halfstep({"config", "check", "run.yaml", "-q"}, directory.path()).out.empty());
  const Finished dry = halfstep({"train", "run.yaml", "--dry-run", "--json"}, directory.path());
  CHECK(Json::parse(dry.out).at("kind") == "dry_run");
  fs::create_directory(directory.file("kept"));
  REQUIRE(halfstep({"explain", "run.yaml", "--run-dir", "kept"}, directory.path()).exit_code == 0);
  CHECK(Json::parse(read_text(directory.path() / "kept/explain.json")).at("kind") == "explain");
  REQUIRE(halfstep({"explain", "run.yaml", "--passes", "--run-dir", "kept"}, directory.path())
              .exit_code == 0);
  CHECK(Json::parse(read_text(directory.path() / "kept/explain.json")).at("kind") == "passes");
}

TEST_CASE("fallback: a device or arithmetic that is not there ends with 6 unless it is allowed") {
  const TemporaryDirectory directory;
  write_config(directory);
  for (const std::vector<std::string>& setting :
       {std::vector<std::string>{"--device", "cuda"}, {"--set", "precision.accumulate=float16"}}) {
    CAPTURE(setting[1]);
    std::vector<std::string> words{"run.yaml", "--dry-run"};
    words.insert(words.begin(), "train");
    words.insert(words.end(), setting.begin(), setting.end());
    CHECK(halfstep(words, directory.path()).exit_code == 6);
    words.emplace_back("--allow-fallback");
    const Finished end = halfstep(words, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
    CHECK(holds(end.err, "W116"));
  }
}

TEST_CASE("report export: devices and links stay, and a full device is an error") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run", {"--max-steps", "1"}).exit_code == 0);
  const auto export_to = [&](const std::string& path) {
    return halfstep({"report", "export", "run", "--format", "csv", "-o", path}, directory.path());
  };
  CHECK(export_to("/dev/full").exit_code == 3);
  CHECK(export_to("/dev/null").exit_code == 0);
  for (const char* device : {"/dev/full", "/dev/null"}) {
    struct stat info {};
    REQUIRE(::stat(device, &info) == 0);
    CHECK(S_ISCHR(info.st_mode));
  }
  write_text(directory.file("target.csv"), "old");
  fs::create_symlink("target.csv", directory.file("link.csv"));
  CHECK(export_to("link.csv").exit_code == 0);
  CHECK(fs::is_symlink(directory.file("link.csv")));
  CHECK(read_text(directory.path() / "target.csv") != "old");
}

TEST_CASE("data info: a named set tells its origin and licence") {
  const TemporaryDirectory directory;
  const Finished end = halfstep({"data", "info", "synthetic_digits"}, directory.path());
  REQUIRE(end.exit_code == 0);
  CHECK(holds(end.out, "origin: drawn by halfstep"));
  CHECK(holds(end.out, "licence: Apache-2.0"));
}

}  // namespace halfstep::test

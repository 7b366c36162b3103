// The reference: every name of the registries and every key of a config is found and described.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <regex>
#include <set>
#include <string_view>

#include "app/small_run.h"
#include "support/paths.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

/// The text without its line breaks.
std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n';
    if (space && line.ends_with(' ')) continue;
    line += space ? ' ' : c;
  }
  return line;
}

/// `halfstep help WORDS --json`, which must succeed.
Json help_json(std::vector<std::string> words) {
  const TemporaryDirectory directory;
  words.insert(words.begin(), "help");
  words.emplace_back("--json");
  const Finished end = halfstep(words, directory.path());
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  REQUIRE(end.err.empty());
  return Json::parse(end.out);
}

/// The topics that the program lists.
std::vector<std::string> topics() {
  std::vector<std::string> names;
  const Json list = help_json({});
  for (const Json& entry : list["entries"]) names.push_back(entry["name"]);
  REQUIRE(names.size() > 10);
  return names;
}

/// The output of `halfstep help WORD`.
std::string help_text(const std::string& word) {
  const TemporaryDirectory directory;
  return halfstep({"help", word}, directory.path()).out;
}

Json config_schema() {
  const TemporaryDirectory directory;
  return Json::parse(halfstep({"config", "schema"}, directory.path()).out);
}

const Json* entry_named(const Json& report, std::string_view name) {
  for (const Json& entry : report["entries"]) {
    if (entry["name"] == name) return &entry;
  }
  return nullptr;
}

/// Paths of all keys of an object of the schema, including those of its sections.
void collect_keys(const Json& object, const std::string& prefix, std::vector<std::string>& keys) {
  if (object.contains("properties")) {
    for (const auto& [name, property] : object["properties"].items()) {
      keys.push_back(prefix + name);
      collect_keys(property, prefix + name + ".", keys);
    }
  }
  for (const char* form : {"anyOf", "oneOf"}) {
    if (!object.contains(form)) continue;
    for (const Json& each : object[form]) collect_keys(each, prefix, keys);
  }
  if (object.contains("items")) collect_keys(object["items"], prefix, keys);
}

}  // namespace

TEST_CASE("help: members of a report that has others beside them are listed, and the others as *") {
  const TemporaryDirectory directory;
  const Finished help = halfstep({"help", "train_report.history"}, directory.path());
  REQUIRE(help.exit_code == 0);
  for (std::string_view member : {"history.epoch\n", "history.eval_seconds\n", "history.*\n"}) {
    CAPTURE(member);
    CHECK(holds(help.out, member));
  }
}

TEST_CASE("help: without a topic it lists the topics, each of which has a page") {
  const TemporaryDirectory directory;
  const Finished end = halfstep({"help"}, directory.path());
  CHECK(end.exit_code == 0);
  for (const std::string& topic : topics()) {
    CAPTURE(topic);
    CHECK(holds(end.out, "\n  " + topic + " "));
    CHECK(fs::exists(source_dir() / "docs" / (topic + ".md")));
  }
}

TEST_CASE("help: every layer, loss, optimizer, schedule and initializer of the schema appears") {
  const Json schema = config_schema();
  struct Row {
    std::string_view family;
    std::string topic;
  };
  for (const Row& row : {Row{"layers", "layers"},
                         Row{"loss", "losses"},
                         Row{"optimizer", "optimizers"},
                         Row{"learning_rate", "schedules"},
                         Row{"initializer", "initializers"}}) {
    const Json topic = help_json({row.topic});
    std::size_t found = 0;
    for (const auto& [key, definition] : schema["$defs"].items()) {
      const std::size_t dot = key.find('.');
      if (dot == std::string::npos || key.substr(0, dot) != row.family) continue;
      if (!definition.contains("properties") || !definition["properties"].contains("type"))
        continue;
      CAPTURE(key);
      const Json* entry = entry_named(topic, key.substr(dot + 1));
      REQUIRE(entry != nullptr);
      CHECK_FALSE((*entry)["doc"].get<std::string>().empty());
      std::set<std::string> arguments{"type"};
      for (const char* list : {"arguments", "common_arguments"}) {
        for (const Json& argument : (*entry)[list]) {
          arguments.insert(argument["name"]);
          CHECK_FALSE(argument["doc"].get<std::string>().empty());
        }
      }
      for (const auto& [name, property] : definition["properties"].items()) {
        CAPTURE(name);
        CHECK(arguments.contains(name));
      }
      ++found;
    }
    CAPTURE(row.topic);
    CHECK(found >= 4);
  }
}

TEST_CASE("help: commands, policies and exit codes are topics") {
  const TemporaryDirectory directory;
  const std::string program = halfstep({"--help"}, directory.path()).out;
  const Json commands = help_json({"commands"});
  for (const char* name : {"halfstep train", "halfstep runs list", "halfstep help"}) {
    CAPTURE(name);
    REQUIRE(entry_named(commands, name) != nullptr);
  }
  CHECK(holds(program, (*entry_named(commands, "halfstep train"))["doc"].get<std::string>()));
  for (const char* name : {"float32", "mixed_float16", "mixed_bfloat16", "float16", "bfloat16"}) {
    CHECK(entry_named(help_json({"policies"}), name) != nullptr);
  }
  const std::string codes = help_text("exit_codes");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"exit codes"}, {"exit", "codes"}, {"exit-codes"}}) {
    std::vector<std::string> all{"help"};
    all.insert(all.end(), words.begin(), words.end());
    CHECK(halfstep(all, directory.path()).out == codes);
  }
  CHECK(holds(codes, "75  (exit code)"));
  const std::string manual = help_text("man");
  for (const Json& code : help_json({"exit_codes"})["entries"]) {
    CHECK(holds(manual, ".B " + code["name"].get<std::string>() + "\n"));
  }
}

TEST_CASE("help: every metric appears, with any number for that of top_5_accuracy") {
  const Json topic = help_json({"metrics"});
  // The message for an unknown metric lists the known ones.
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished end = halfstep({"config", "check", "run.yaml", "--set", "metrics=[no_such_thing]"},
                                directory.path());
  CHECK(end.exit_code == 2);
  for (const Json& entry : topic["entries"]) {
    CHECK(holds(end.err, entry["name"].get<std::string>()));
  }
  CHECK(entry_named(topic, "accuracy") != nullptr);
  CHECK(help_json({"top_3_accuracy"})["entries"][0]["name"] == "top_5_accuracy");
}

TEST_CASE("help: every key of the config's schema is found by its path") {
  const Json schema = config_schema();
  std::vector<std::string> keys;
  collect_keys(schema, "", keys);
  CHECK(keys.size() > 80);
  CHECK(std::find(keys.begin(), keys.end(), "precision.loss_scale.initial") != keys.end());
  CHECK(std::find(keys.begin(), keys.end(), "precision.overrides.match") != keys.end());
  for (const std::string& key : keys) {
    CAPTURE(key);
    const Json found = help_json({key});
    REQUIRE(found["entries"].size() >= 1);
    // The topics `data` and `metrics` are more than the keys of that name.
    if (key == "data" || key == "metrics") continue;
    CHECK(entry_named(found, key) != nullptr);
  }
}

TEST_CASE("help: numbers of the config have a unit, where they have one at all") {
  const std::set<std::string> without{"version", "seed", "index", "split_seed"};
  const Json config = help_json({"config"});
  for (const Json& entry : config["entries"]) {
    for (const Json& argument : entry["arguments"]) {
      const std::string type = argument["type"];
      if (!type.starts_with("integer") && !type.starts_with("number")) continue;
      if (without.contains(argument["name"])) continue;
      CAPTURE(argument["path"].get<std::string>());
      CHECK(argument["unit"].is_string());
    }
  }
}

TEST_CASE("help: every warning is in one table, with what it means and what to do") {
  const TemporaryDirectory directory;
  std::set<std::string> codes;
  const Json warnings = help_json({"warnings"});
  for (const Json& entry : warnings["entries"]) {
    CHECK(entry["kind"] == "warning");
    CHECK(entry["facts"][0]["label"] == "what to do");
    CHECK(codes.insert(entry["name"].get<std::string>()).second);
  }
  CHECK(codes.size() >= 25);
  CHECK(holds(on_one_line(halfstep({"help", "W211"}, directory.path()).out),
              "The loss scale is taken off the gradients in float16"));
  CHECK(holds(halfstep({"help", "W212"}, directory.path()).err, "did you mean 'W"));

  // No source but the table writes a code as text, and none names one that the table has not.
  const std::regex code("(\"?)(W[0-9]{3})\\b"), comment("//[^\n]*");
  std::size_t sources = 0;
  for (const char* folder : {"lib", "app"}) {
    for (const fs::directory_entry& file :
         fs::recursive_directory_iterator(source_dir() / folder)) {
      const std::string name = file.path().filename().string();
      if (!name.ends_with(".cc") && !name.ends_with(".h")) continue;
      ++sources;
      CAPTURE(file.path().string());
      const std::string text = std::regex_replace(read_text(file.path()), comment, "");
      for (std::sregex_iterator at(text.begin(), text.end(), code), end; at != end; ++at) {
        CAPTURE(at->str());
        CHECK(codes.contains((*at)[2]));
        CHECK((name == "warning_codes.h" || (*at)[1].length() == 0));
      }
    }
  }
  CHECK(sources > 300);
}

TEST_CASE("help: a key is described with type, unit, default and range") {
  const Json found = help_json({"training.batch_size"});
  REQUIRE(found["entries"].size() == 1);
  const Json& argument = found["entries"][0]["arguments"][0];
  CHECK(argument["path"] == "training.batch_size");
  CHECK(argument["type"] == "integer, 1 to 1000000000");
  CHECK(argument["unit"] == "samples");
  CHECK(argument["default"] == "32");
  CHECK(argument["minimum"] == 1);
  CHECK(argument["required"] == false);

  const TemporaryDirectory directory;
  const Finished end = halfstep({"help", "training.batch_size"}, directory.path());
  CHECK(holds(end.out, "integer, 1 to 1000000000; unit: samples; default: 32"));
}

TEST_CASE("help: names are found bare, with their kind, and as a config writes them") {
  struct Row {
    std::string word, name, kind;
  };
  for (const Row& row : {Row{"conv2d", "conv2d", "layer"},
                         Row{"layers.conv2d", "conv2d", "layer"},
                         Row{"optimizer.adam", "adam", "optimizer"},
                         Row{"loss.mean_squared_error", "mean_squared_error", "loss"},
                         Row{"mixed_float16", "mixed_float16", "policy"},
                         Row{"npz", "npz", "data format"},
                         Row{"mnist", "mnist", "data set"},
                         Row{"precision.loss_scale", "precision.loss_scale", "key of a config"},
                         Row{"batch_size", "training.batch_size", "key of a config"},
                         Row{"heuristic", "device.autotune", "key of a config"},
                         Row{"conv2d.filters", "filters", "argument"},
                         Row{"model.layers[0].filters", "filters", "argument"},
                         Row{"optimizer.beta_1", "beta_1", "argument"},
                         Row{"layers.conv2d.kernel_regularizer.l1", "l1", "argument"},
                         Row{"lstm.recurrent_regularizer.l2", "l2", "argument"},
                         Row{"layers.dense.kernel_initializer.stddev", "stddev", "argument"}}) {
    CAPTURE(row.word);
    const Json found = help_json({row.word});
    REQUIRE(found["entries"].size() >= 1);
    CHECK(found["entries"][0]["name"] == row.name);
    CHECK(found["entries"][0]["kind"] == row.kind);
  }
  // A layer and an activation have this name.
  CHECK(help_json({"softmax"})["entries"].size() == 2);
  // Different defaults are listed separately.
  CHECK(help_json({"optimizer.learning_rate"})["entries"].size() >= 2);
  // A section is shown with the keys below it.
  CHECK(help_json({"precision.loss_scale"})["entries"][0]["arguments"].size() > 10);
}

TEST_CASE("help: layers show shapes, dtypes and an example that were found by building them") {
  const TemporaryDirectory directory;
  const auto shown = [&](const std::string& name) {
    return on_one_line(halfstep({"help", name}, directory.path()).out);
  };
  const std::string conv = shown("conv2d");
  CHECK(holds(conv, "{type: conv2d, filters: 4, kernel_size: 3, padding: same}"));
  CHECK(holds(conv, "samples of [6, 6, 2] become [6, 6, 4]; kernel [3, 3, 2, 4]"));
  CHECK(holds(conv, "stored in its variable dtype: kernel, bias"));
  CHECK(holds(conv, "arguments of every layer"));
  const std::string norm = shown("batch_normalization");
  CHECK(holds(norm, "stored in float32 under every policy: gamma, beta, moving_mean"));
  CHECK(holds(norm, "moving_mean [3] (not trained)"));
  CHECK(holds(shown("adam"), "m, v for each weight"));
}

TEST_CASE("help: an op has its signature, lists, gradient and kernels") {
  const std::string text = on_one_line(help_text("MatMul"));
  CHECK(holds(text, "(a: T, b: T) -> (product: T)"));
  CHECK(holds(text, "lists allow"));
  CHECK(holds(text, "gradient yes"));
  CHECK(holds(text, "onednn/matmul, onednn/matmul by float32, reference/matmul"));
  CHECK(holds(text, "cublaslt/matmul"));
  const std::string mean = on_one_line(help_text("Mean"));
  CHECK(holds(mean, "cuda deny, bf16 infer, cpu deny, fp16_cpu deny"));
}

TEST_CASE("help: every field of every report appears, with the meaning that its schema gives") {
  const Json schema = Json::parse(halfstep({"report", "schema"}, source_dir()).out);
  const Json topic = help_json({"reports"});
  REQUIRE(topic["entries"].size() == schema["oneOf"].size());
  for (std::size_t i = 0; i < schema["oneOf"].size(); ++i) {
    const Json& report = schema["oneOf"][i];
    std::map<std::string, std::string> docs;
    for (const Json& field : topic["entries"][i]["arguments"]) docs[field["path"]] = field["doc"];
    for (const auto& [name, member] : report["properties"].items()) {
      CAPTURE(name);
      REQUIRE(docs.contains(name));
      CHECK(docs[name].starts_with(member.value("description", "")));
    }
  }
  CHECK(holds(help_text("train_report.step_time.median"), "(field of a report)"));
  CHECK(
      holds(on_one_line(help_text("report.policies.speedup.ratio_of_medians")), "point estimate"));
}

TEST_CASE("help: an unknown name ends with 2 and names the nearest") {
  struct Row {
    std::string word;
    std::string_view said;
  };
  const TemporaryDirectory directory;
  for (const Row& row : {Row{"training.batch_sise", "did you mean 'training.batch_size'?"},
                         Row{"conv2", "did you mean 'conv2d'?"},
                         Row{"layesr", "did you mean 'layers'?"},
                         Row{"precision.los_scale", "did you mean 'precision.loss_scale'?"},
                         Row{"trian", "did you mean 'train'?"},
                         Row{"xyzzy.plugh.quux", "'halfstep help' lists the topics"}}) {
    CAPTURE(row.word);
    for (const bool json : {false, true}) {
      std::vector<std::string> words{"help", row.word};
      if (json) words.emplace_back("--json");
      const Finished end = halfstep(words, directory.path());
      CAPTURE(end.err);
      CHECK(end.exit_code == 2);
      CHECK(end.out.empty());
      CHECK(holds(end.err, row.said));
    }
  }
}

TEST_CASE("help: commands have theirs, also where a topic has the same name") {
  const TemporaryDirectory directory;
  CHECK(halfstep({"help", "train"}, directory.path()).out ==
        halfstep({"train", "--help"}, directory.path()).out);
  CHECK(halfstep({"help", "data", "info"}, directory.path()).out ==
        halfstep({"data", "info", "--help"}, directory.path()).out);
  CHECK(holds(halfstep({"help", "config"}, directory.path()).out, "halfstep config --help"));
  CHECK(halfstep({"help", "data", "inof"}, directory.path()).exit_code == 2);
  CHECK(halfstep({"help", "train", "--json"}, directory.path()).exit_code == 2);
}

TEST_CASE("help: what --json prints is valid") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "schema.json",
             halfstep({"report", "schema"}, directory.path()).out);
  std::vector<std::string> words{
      "python3", (source_dir() / "tests/app/validate.py").string(), "schema.json"};
  std::vector<std::string> asked{"", "conv2d", "training.batch_size", "optimizer.beta_1"};
  const std::vector<std::string> all = topics();
  asked.insert(asked.end(), all.begin(), all.end());
  for (const std::string& topic : asked) {
    const Json report = topic.empty() ? help_json({}) : help_json({topic});
    CHECK(report["kind"] == "reference");
    const std::string file = "help" + std::to_string(words.size()) + ".json";
    write_text(directory.path() / file, report.dump());
    CHECK(halfstep({"report", "validate", file}, directory.path()).exit_code == 0);
    words.push_back(file);
  }
  const Finished end = Process(words, directory.path()).wait();
  if (end.exit_code == 77) return;  // python3-jsonschema is not there
  CAPTURE(end.out);
  CHECK(end.exit_code == 0);
}

}  // namespace halfstep::test

// Data formats and data sets, the keys of a config, and the warnings.

#include <fmt/format.h>

#include "config/run_spec.h"
#include "config/warning_codes.h"
#include "core/ranges.h"
#include "data/dataset_registry.h"
#include "precision/policy.h"
#include "reference/reference.h"

namespace halfstep::app {
namespace {

using config::FieldDoc;

// Data.

std::string extents(const data::DatasetDef& def) {
  return fmt::format("[{}]", fmt::join(def.sample_shape, ", "));
}

std::string file_names(const data::DatasetDef& def) {
  const auto names = mapped<std::string_view>(def.files, &data::DataFile::name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Entry format_entry(const data::DatasetDef& def) {
  Entry entry{.kind = kinds::k_data_format,
              .name = std::string(def.name),
              .doc = std::string(def.doc),
              .prefixes = {"format", "data.format", "data"}};
  if (!def.files.empty()) entry.facts.push_back({"files", file_names(def)});
  if (def.test_optional) entry.facts.push_back({"test set", "the last two files may be absent"});
  if (def.name == "npz") {
    const auto add = [&entry](std::string_view label, const auto& names) {
      entry.facts.push_back({std::string(label), fmt::format("{}", fmt::join(names, " or "))});
    };
    add("training samples", data::k_npz_train_images);
    add("training labels", data::k_npz_train_labels);
    add("test samples", data::k_npz_test_images);
    add("test labels", data::k_npz_test_labels);
  }
  if (def.classes > 0) {
    entry.facts.push_back({"samples", fmt::format("{}, {} classes", extents(def), def.classes)});
  }
  std::string example = fmt::format("format: {}, path: my_folder", def.name);
  if (def.load == data::load_synthetic_digits) {
    example = fmt::format("format: {}, train_samples: 10000", def.name);
  } else if (def.load == data::load_csv_set) {
    example = fmt::format("format: {}, path: my_data.csv, table: {{target: y}}", def.name);
  } else if (def.load == data::load_text_set) {
    example = fmt::format(
        "format: {}, path: my_text.txt, text: {{length: 64, tokens: character}}, test_split: 0.1",
        def.name);
  } else if (def.name == "npz") {
    example = fmt::format("format: {}, path: my_data.npz", def.name);
  }
  entry.facts.push_back({"example", fmt::format("data: {{{}}}", example)});
  return entry;
}

Entry set_entry(const data::DatasetDef& def) {
  Entry entry{.kind = kinds::k_data_set,
              .name = std::string(def.name),
              .doc = fmt::format("Images of {}, {} classes.", extents(def), def.classes),
              .prefixes = {"data set", "data.name", "data"}};
  if (!def.files.empty()) entry.facts.push_back({"files", file_names(def)});
  constexpr std::size_t k_few = 20;
  if (def.class_names.size() <= k_few) {
    entry.facts.push_back({"classes", fmt::format("{}", fmt::join(def.class_names, ", "))});
  }
  if (!def.remedy.empty()) entry.facts.push_back({"to get it", std::string(def.remedy)});
  entry.facts.push_back({"origin", std::string(def.origin)});
  entry.facts.push_back({"licence", std::string(def.licence)});
  entry.facts.push_back({"example", fmt::format("data: {{name: {}}}", def.name)});
  return entry;
}

// Config.

/// A key of the config, with all keys below it for the sections.
std::vector<Entry> sections() {
  std::vector<FieldDoc> fields = shown(config::describe_struct(config::RunSpec()));
  Entry top{.kind = kinds::k_section,
            .name = "config",
            .doc = "The keys of the outermost level. Each section is described below."};
  std::vector<Entry> below;
  for (FieldDoc& field : fields) {
    if (field.path == "metrics") field.kind = "metric";
    const std::size_t dot = field.path.find('.');
    if (dot == std::string::npos) {
      if (field.type == "section")
        below.push_back({.kind = kinds::k_section, .name = field.name, .doc = field.doc});
      top.arguments.push_back(std::move(field));
      continue;
    }
    Entry& section = below.back();
    field.path.erase(0, dot + 1);
    section.arguments.push_back(std::move(field));
  }
  below.insert(below.begin(), std::move(top));
  return below;
}

Entry section(std::string_view name) {
  for (Entry& entry : sections()) {
    if (entry.name == name) return std::move(entry);
  }
  require(false, "no section {}", name);
  return {};
}

}  // namespace

Topic data_topic() {
  Topic topic{.name = "data",
              .title = "Data",
              .doc = "data of your own, step by step; formats and known data sets",
              .text = data_guide()};
  topic.entries.push_back(section("data"));
  for (const data::DatasetDef& def : data::formats()) {
    if (!def.doc.empty()) topic.entries.push_back(format_entry(def));
  }
  for (const data::DatasetDef& def : data::named_sets()) topic.entries.push_back(set_entry(def));
  return topic;
}

Topic config_topic() {
  Topic topic{.name = "config",
              .title = "Configuration",
              .doc = "every key of a config, with its unit and default",
              .text =
                  "A config is a YAML file. Keys that do not exist are errors; keys that are left "
                  "out have the default given here. `halfstep config check` says everything that "
                  "is wrong with a config, `halfstep config show --origins` prints it with all "
                  "defaults and where each value comes from, and `--set training.batch_size=64` "
                  "overrides a key on the command line. A number may be written as a fraction, "
                  "`1/255`. A path is relative to the config file. `${env:NAME}` and "
                  "`${env:NAME:-default}` are replaced by variables of the environment."};
  topic.entries = sections();
  return topic;
}

Topic policies_topic() {
  Topic topic{
      .name = "policies",
      .title = "Policies",
      .doc = "the dtypes in which layers compute and keep their weights",
      .text =
          "`precision.policy`, or `--policy`, chooses the dtypes of all layers; a layer's own "
          "`dtype` and `precision.overrides` choose those of some. Losses and metrics are float32 "
          "under each policy. `precision.rewrite: auto` chooses the dtype of each op instead."};
  for (const precision::Policy& policy : precision::all_policies()) {
    topic.entries.push_back(
        {.kind = kinds::k_policy,
         .name = std::string(policy.name),
         .doc = fmt::format("Layers compute in {} and store their weights in {}.",
                            name(policy.compute),
                            name(policy.variable)),
         .facts = {{"example", fmt::format("precision: {{policy: {}}}", policy.name)}},
         .prefixes = {"policy", "precision.policy"}});
  }
  return topic;
}

Topic warnings_topic() {
  Topic topic{
      .name = "warnings",
      .title = "Warnings",
      .doc = "what the codes of warnings and hints mean, and what to do",
      .text =
          "Each warning, and each hint of `explain`, begins with a code such as W211. A code keeps "
          "its meaning from one version to the next. A warning reports a setting that is allowed "
          "and probably not meant; with `--strict` it is an error. Reports list the warnings of a "
          "run under `warnings`. Codes W1xx are about the config, W2xx about the dtypes in which "
          "ops compute, W3xx about a run and its measurements."};
  for (const config::WarningCode& each : config::warning_codes()) {
    topic.entries.push_back({.kind = kinds::k_warning,
                             .name = std::string(each.code),
                             .doc = std::string(each.meaning),
                             .facts = {{"what to do", std::string(each.remedy)}},
                             .prefixes = {"warning", "warnings", "hint"}});
  }
  return topic;
}

}  // namespace halfstep::app

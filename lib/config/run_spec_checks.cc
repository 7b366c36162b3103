#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "config/node.h"
#include "config/run_spec.h"
#include "config/scalar.h"
#include "config/training_spec.h"
#include "config/warning_codes.h"
#include "core/error.h"
#include "core/pattern.h"

namespace halfstep::config {
namespace {

/// A position for use inside a sentence: "a.yaml:3:5", "--policy mixed_float16".
std::string at(const Where& where) {
  Where place = where;
  place.path.clear();
  return to_string(place);
}

class Checks {
 public:
  Checks(RunSpec& spec, Diagnostics& diagnostics) : spec_(spec), diagnostics_(diagnostics) {}

  void run() {
    top();
    data();
    sequential_or_graph();
    policy_and_rewrite();
    loss_scale();
    overrides();
    training();
    device();
    report();
  }

 private:
  /// Whether the config gives a value other than null at this path.
  bool given(std::string_view path) const {
    const Node* node = find_path(spec_.source, path);
    return node != nullptr && node->kind != Node::Kind::null;
  }

  /// Whether the node holds anything but nulls and empty lists, as `config show` writes them.
  static bool says_something(const Node& node) {
    switch (node.kind) {
      case Node::Kind::null:
        return false;
      case Node::Kind::scalar:
        return true;
      case Node::Kind::sequence:
        return !node.items.empty();
      case Node::Kind::map:
        return std::any_of(node.entries.begin(), node.entries.end(), [](const Node::Entry& entry) {
          return says_something(entry.value);
        });
    }
    return true;
  }

  bool says_something(std::string_view path) const {
    const Node* node = find_path(spec_.source, path);
    return node != nullptr && says_something(*node);
  }

  bool is_map(std::string_view path) const {
    const Node* node = find_path(spec_.source, path);
    return node != nullptr && node->kind == Node::Kind::map;
  }

  void error(std::string_view path, std::string message, std::string hint = {}) {
    diagnostics_.error(spec_.where(path), std::move(message), std::move(hint));
  }

  void warn(std::string_view code, std::string_view path, std::string message) {
    spec_.warnings.push_back(warning(code, spec_.where(path), std::move(message)));
  }

  void top() {
    if (spec_.version != 1) {
      error("version", fmt::format("this program reads version 1, got {}", spec_.version));
    }
    const std::string& name = spec_.name;
    const bool has_control = std::any_of(
        name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    if (name.empty() || name.find('/') != std::string::npos || name[0] == '.' || has_control) {
      error("name", "must be a file name, as the run directory is called so");
    }
  }

  void data() {
    const DataSpec& data = spec_.data;
    if (!is_map("data")) return;
    for (const std::string_view other : {"data.format", "data.path", "data.sha256"}) {
      if (given("data.name") && given(other)) {
        error(other, fmt::format("excludes data.name (at {})", at(spec_.where("data.name"))));
      }
    }
    if (!given("data.name") && !given("data.format") && !given("data.path")) {
      error("data", "needs a name, or a format with a path");
    }
    if (data.streams && data.shuffle && given("data.shuffle")) {
      error("data.shuffle",
            fmt::format("excludes data.streams (at {})", at(spec_.where("data.streams"))));
    }
    if (data.streams) spec_.data.shuffle = false;
    const bool drawn = data.format == DataFormat::synthetic_digits;
    if (data.format && !drawn && !given("data.path")) error("data", "the format needs a path");
    if (!data.format && given("data.path") && !given("data.name")) {
      error("data.path", "needs a format beside it");
    }
    if (drawn && given("data.path")) error("data.path", "synthetic_digits are drawn, not read");
    const bool files =
        data.format == DataFormat::npz || data.format == DataFormat::idx || !data.format;
    if (given("data.layout") && (given("data.name") || !files)) {
      error("data.layout", "is for the formats npz and idx; the layout of other data is known");
    }
    folder_of_pictures();
    table();
    text();
    class_names();
    sample_weight();
    const bool synthetic = drawn || data.name == "synthetic_digits" || data.name == "moving_digits";
    for (const std::string_view count : {"data.train_samples", "data.test_samples"}) {
      if (given(count) && !synthetic)
        error(count, "is for synthetic_digits and moving_digits only");
    }
    const auto is_hex = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    };
    if (data.sha256 && (data.sha256->size() != 64 ||
                        !std::all_of(data.sha256->begin(), data.sha256->end(), is_hex))) {
      error("data.sha256", "must be 64 hexadecimal digits");
    }
  }

  void folder_of_pictures() {
    const DataSpec& data = spec_.data;
    const DataSpec usual;
    struct Key {
      std::string_view path;
      bool set;
    };
    const bool pictures = data.format == DataFormat::image_folder;
    for (const Key& key : {Key{"data.image_size", !data.image_size.empty()},
                           Key{"data.channels", data.channels.has_value()},
                           Key{"data.resize", data.resize != usual.resize}}) {
      if (key.set && !pictures) error(key.path, "is for the format image_folder only");
    }
    const bool drawn = pictures || data.format == DataFormat::csv;
    if (data.test_split != usual.test_split && !drawn && data.format != DataFormat::text) {
      error("data.test_split", "is for the formats csv, image_folder and text only");
    }
    if (data.split_seed != usual.split_seed && !drawn) {
      error("data.split_seed", "is for the formats csv and image_folder only");
    }
    if (!data.image_size.empty() && data.image_size.size() != 2) {
      error("data.image_size",
            fmt::format("must be [height, width], got {} numbers", data.image_size.size()));
    }
    if (data.channels == 2) error("data.channels", "must be 1 (grey) or 3 (RGB), got 2");
  }

  void table() {
    const std::optional<TableSpec>& table = spec_.data.table;
    if (spec_.data.format != DataFormat::csv) {
      if (table) error("data.table", "is for the format csv only");
      return;
    }
    if (!table) {
      error("data", "the format csv needs data.table.target, the column with the labels");
      return;
    }
    const std::string separator = table->separator.value_or(",");
    if (separator.size() != 1 || separator.find_first_of("\"\r\n") != separator.npos) {
      error("data.table.separator",
            fmt::format("must be one character, and no quote or end of line, got '{}'", separator));
    }
    const auto listed = [](const std::vector<std::string>& names, const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (listed(table->ignore, table->target)) error("data.table.ignore", "holds the target");
    if (listed(table->categorical, table->target)) {
      error("data.table.categorical",
            "holds the target, whose values are classes or numbers as the loss has it");
    }
  }

  void text() {
    const std::optional<TextSpec>& text = spec_.data.text;
    if (spec_.data.format != DataFormat::text) {
      if (text) error("data.text", "is for the format text only");
      return;
    }
    if (!text) {
      error("data", "the format text needs data.text.length, the tokens of a window");
      return;
    }
    if (text->vocabulary_size && text->tokens == TextTokens::byte) {
      error("data.text.vocabulary_size", "is for characters and words; there are 256 bytes");
    }
    if (spec_.data.scale) error("data.scale", "does not go with a text, whose tokens are indices");
  }

  void class_names() {
    const std::vector<std::string>& names = spec_.data.class_names;
    if (names.empty()) return;
    const std::optional<DataFormat>& format = spec_.data.format;
    if (given("data.name") || format == DataFormat::synthetic_digits) {
      error("data.class_names", "is for data without names of its own; this set has names");
    } else if (format == DataFormat::image_folder) {
      error("data.class_names", "the classes of an image_folder have the names of its sub-folders");
    } else if (format == DataFormat::csv) {
      error("data.class_names", "the classes of a csv are the values of its target");
    } else if (format == DataFormat::text) {
      error("data.class_names", "the classes of a text are its tokens");
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::string path = fmt::format("data.class_names[{}]", i);
      if (names[i].empty()) error(path, "a class needs a name");
      const auto first = std::find(names.begin(), names.end(), names[i]) - names.begin();
      if (static_cast<std::size_t>(first) != i) {
        error(path, fmt::format("'{}' is the name of class {} already", names[i], first));
      }
    }
  }

  void sample_weight() {
    const DataSpec& data = spec_.data;
    if (!data.sample_weight) return;
    if (data.format != DataFormat::csv && data.format != DataFormat::npz) {
      error("data.sample_weight", "is for the formats csv and npz");
    } else if (data.table && *data.sample_weight == data.table->target) {
      error("data.sample_weight", "is the target, which has the labels");
    }
  }

  void sequential_or_graph() {
    if (!is_map("model")) return;
    const bool layers = given("model.layers");
    const bool nodes = given("model.nodes");
    if (layers && nodes) {
      error("model.nodes",
            fmt::format("excludes model.layers (at {})", at(spec_.where("model.layers"))));
      return;
    }
    if (!layers && !nodes)
      return error("model", "needs layers (with input), or nodes (with inputs and outputs)");
    if (layers) {
      need("model.input", "model.layers");
      forbid({"model.inputs", "model.outputs"}, "model.layers");
      if (spec_.model.layers.kind != Node::Kind::sequence) {
        error("model.layers",
              fmt::format("must be a list of layers, got {}", describe(spec_.model.layers)));
      } else if (spec_.model.layers.items.empty()) {
        error("model.layers", "must hold at least one layer");
      }
      return;
    }
    need("model.inputs", "model.nodes");
    need("model.outputs", "model.nodes");
    forbid({"model.input"}, "model.nodes");
    if (spec_.model.nodes.kind != Node::Kind::map) {
      error("model.nodes",
            fmt::format("must be a map from names to layers, got {}", describe(spec_.model.nodes)));
    } else if (spec_.model.nodes.entries.empty()) {
      error("model.nodes", "must hold at least one layer");
    }
    for (const NamedExtents& input : spec_.model.inputs) {
      if (spec_.model.nodes.find(input.name) == nullptr) continue;
      error(key_path("model.inputs", input.name), "a node has the same name");
    }
  }

  void need(std::string_view path, std::string_view with) {
    if (!given(path)) error("model", fmt::format("{} needs {}", with, path));
  }

  void forbid(std::initializer_list<std::string_view> paths, std::string_view with) {
    for (const std::string_view path : paths) {
      if (given(path)) error(path, fmt::format("does not go with {}", with));
    }
  }

  void policy_and_rewrite() {
    const PrecisionSpec& precision = spec_.precision;
    const bool rewrites = precision.rewrite == Rewrite::automatic;
    if (rewrites && precision.policy != "float32") {
      error("precision.rewrite",
            fmt::format("auto needs the policy float32, but policy is {} (at {})",
                        precision.policy,
                        at(spec_.where("precision.policy"))),
            "use one of the two");
    }
    if (!rewrites) {
      for (const std::string_view path :
           {"precision.target", "precision.level", "precision.lists"}) {
        if (says_something(path))
          warn(k_idle_rewrite_setting, path, "has no effect without rewrite: auto");
      }
      if (precision.rewrite_rules != PrecisionSpec{}.rewrite_rules) {
        warn(k_idle_rewrite_setting,
             "precision.rewrite_rules",
             "has no effect without rewrite: auto");
      }
    }
    const bool pure = precision.policy == "float16" || precision.policy == "bfloat16";
    if (precision.grad_dtype == GradDtype::float32 && (rewrites || pure)) {
      error("precision.grad_dtype",
            fmt::format("float32 is for mixed policies, not for {}",
                        rewrites ? "a rewrite, which chooses each op's dtype itself"
                                 : "weights that are stored in " + precision.policy));
    }
    if (pure) {
      warn(k_half_weights_asked,
           "precision.policy",
           fmt::format("keeps the weights in {0} too; mixed_{0} keeps them in float32",
                       precision.policy));
    }
  }

  void loss_scale() {
    const LossScaleSpec& scale = spec_.precision.loss_scale;
    const std::string_view path = "precision.loss_scale.initial";
    if (scale.mode == LossScaleMode::fixed && scale.initial < 1) {
      error(path, fmt::format("a fixed scale must be at least 1, got {}", shortest(scale.initial)));
    }
    if (scale.mode == LossScaleMode::none) {
      if (given(path) && scale.initial != LossScaleSpec().initial) {
        warn(k_idle_initial_scale, path, "has no effect with mode: none");
      }
      return;
    }
    int exponent = 0;
    if (std::frexp(scale.initial, &exponent) != 0.5) {
      warn(k_rounding_scale,
           path,
           fmt::format("{} is not a power of two, so scaling rounds", shortest(scale.initial)));
    }
    if (scale.mode == LossScaleMode::fixed) return;
    if (scale.max && scale.initial > *scale.max) {
      error(given(path) ? path : "precision.loss_scale.max",
            fmt::format("the initial scale, {}, is above max, {}",
                        shortest(scale.initial),
                        shortest(*scale.max)));
    }
    if (scale.min && scale.initial < *scale.min) {
      error(given(path) ? path : "precision.loss_scale.min",
            fmt::format("the initial scale, {}, is below min, {}",
                        shortest(scale.initial),
                        shortest(*scale.min)));
    }
  }

  void overrides() {
    constexpr std::string_view k_regex = "re:";
    for (std::size_t i = 0; i < spec_.precision.overrides.size(); ++i) {
      const std::string& match = spec_.precision.overrides[i].match;
      const std::string path = item_path("precision.overrides", i) + ".match";
      if (!given(path)) continue;
      if (match.empty()) error(path, "must name a layer");
      if (!match.starts_with(k_regex)) continue;
      const Pattern pattern(match.substr(k_regex.size()));
      if (!pattern.problem().empty()) {
        error(path, fmt::format("'{}' is not a regular expression: {}", match, pattern.problem()));
      }
    }
  }

  void training() {
    const std::optional<std::string>& target = spec_.training.target;
    if (target && !parse_target(*target)) {
      error("training.target",
            fmt::format("must be a metric and a value, got '{}'", *target),
            "such as val_accuracy=0.97");
    }
    if (const auto parsed = target ? parse_target(*target) : std::nullopt) {
      epoch_metric("training.target", parsed->metric);
    }
    if (spec_.training.early_stopping) {
      epoch_metric("training.early_stopping.monitor", spec_.training.early_stopping->monitor);
    }
    if (spec_.training.keep_best) epoch_metric("training.keep_best", *spec_.training.keep_best);
    if (spec_.training.accumulate_steps > spec_.training.batch_size) {
      error("training.accumulate_steps",
            fmt::format("{} parts of a batch of {}",
                        spec_.training.accumulate_steps,
                        spec_.training.batch_size),
            "batch_size counts the samples of all parts together");
    }
    const std::vector<std::string>& metrics = spec_.metrics;
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      if (std::find(metrics.begin(),
                    metrics.begin() + static_cast<std::ptrdiff_t>(i),
                    metrics[i]) != metrics.begin() + static_cast<std::ptrdiff_t>(i)) {
        error("metrics", fmt::format("'{}' stands twice", metrics[i]));
      }
    }
  }

  /// A metric that a rule evaluates at the end of each epoch.
  void epoch_metric(std::string_view path, const std::string& metric) {
    const std::vector<std::string> known = spec_.epoch_metrics();
    if (std::find(known.begin(), known.end(), metric) != known.end()) return;
    std::string message = fmt::format("no epoch has a metric '{}'", metric);
    if (metric.starts_with("val_") && spec_.data.validation_split == 0) {
      message += ": data.validation_split is 0";
    }
    // An error of a defaulted monitor is reported at the section that needs it.
    const bool monitor = path == "training.early_stopping.monitor" && !given(path);
    error(monitor ? "training.early_stopping" : path, std::move(message), choices(metric, known));
  }

  void device() {
    if (spec_.device.index > 0 && spec_.device.kind != DeviceKind::cuda) {
      error("device.index", "is for the kind cuda only");
    }
  }

  void report() {
    for (std::size_t i = 0; i < spec_.report.formats.size(); ++i) {
      const std::string& format = spec_.report.formats[i];
      if (std::find(k_report_formats.begin(), k_report_formats.end(), format) !=
          k_report_formats.end()) {
        continue;
      }
      error(item_path("report.formats", i),
            fmt::format("must be one of {}, got '{}'", fmt::join(k_report_formats, ", "), format),
            did_you_mean(format, {k_report_formats.begin(), k_report_formats.end()}));
    }
  }

  RunSpec& spec_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check(RunSpec& spec, Diagnostics& diagnostics) { Checks(spec, diagnostics).run(); }

}  // namespace halfstep::config

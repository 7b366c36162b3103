#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "config/node.h"
#include "config/outputs.h"
#include "config/run_spec.h"
#include "config/scalar.h"
#include "config/spec_checks.h"
#include "config/training_spec.h"
#include "config/warning_codes.h"
#include "core/error.h"
#include "core/pattern.h"
#include "core/ranges.h"

namespace halfstep::config {
namespace {

class Checks : CheckedSpec {
 public:
  using CheckedSpec::CheckedSpec;

  void run() {
    top();
    check_data(*this);
    sequential_or_graph();
    trained_outputs(spec_, diagnostics_);
    policy_and_rewrite();
    loss_scale();
    overrides();
    training();
    device();
    report();
  }

 private:
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
        return std::ranges::any_of(
            node.entries, [](const Node::Entry& entry) { return says_something(entry.value); });
    }
    return true;
  }

  bool says_something(std::string_view path) const {
    const Node* node = find_path(spec_.source, path);
    return node != nullptr && says_something(*node);
  }

  void top() {
    if (spec_.version != 1) {
      error("version", fmt::format("this program reads version 1, got {}", spec_.version));
    }
    const std::string& name = spec_.name;
    const bool has_control =
        std::ranges::any_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x20; });
    if (name.empty() || name.find('/') != std::string::npos || name[0] == '.' || has_control) {
      error("name", "must be a file name, as the run directory is called so");
    }
  }

  void sequential_or_graph() {
    if (!is_map("model")) return;
    const bool layers = is_set("model.layers");
    const bool nodes = is_set("model.nodes");
    if (layers && nodes) {
      error("model.nodes", fmt::format("excludes model.layers (at {})", location("model.layers")));
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
    if (!is_set(path)) error("model", fmt::format("{} needs {}", with, path));
  }

  void forbid(std::initializer_list<std::string_view> paths, std::string_view with) {
    for (const std::string_view path : paths) {
      if (is_set(path)) error(path, fmt::format("cannot be combined with {}", with));
    }
  }

  void policy_and_rewrite() {
    const PrecisionSpec& precision = spec_.precision;
    const bool rewrites = precision.rewrite == Rewrite::automatic;
    if (rewrites && precision.policy != "float32") {
      error("precision.rewrite",
            fmt::format("auto needs the policy float32, but policy is {} (at {})",
                        precision.policy,
                        location("precision.policy")),
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
      warn(k_half_weights_requested,
           "precision.policy",
           fmt::format("keeps the weights in {0} too; mixed_{0} keeps them in float32",
                       precision.policy));
    }
  }

  void loss_scale() {
    const LossScaleSpec& scale = spec_.precision.loss_scale;
    const std::string_view path = "precision.loss_scale.initial";
    const double initial = initial_scale(scale);
    if (scale.mode == LossScaleMode::fixed && initial < 1) {
      error(path, fmt::format("a fixed scale must be at least 1, got {}", shortest(initial)));
    }
    const bool none = scale.mode == LossScaleMode::none;
    const auto idle = [&](std::string_view key, bool changed) {
      const std::string setting = fmt::format("precision.loss_scale.{}", key);
      if (!changed || !is_set(setting)) return;
      warn(k_idle_initial_scale,
           setting,
           fmt::format("has no effect with mode: {}", none ? "none" : "fixed"));
    };
    const LossScaleSpec defaults;
    if (none || scale.mode == LossScaleMode::fixed) {
      idle("growth_factor", scale.growth_factor != defaults.growth_factor);
      idle("growth_steps", scale.growth_steps != defaults.growth_steps);
      idle("backoff_factor", scale.backoff_factor != defaults.backoff_factor);
      idle("min", scale.min != defaults.min);
      idle("max", scale.max != defaults.max);
      idle("hysteresis", scale.hysteresis != defaults.hysteresis);
      idle("on_overflow", scale.on_overflow != defaults.on_overflow);
      idle("max_consecutive_skips", scale.max_consecutive_skips != defaults.max_consecutive_skips);
    }
    if (none) {
      idle("initial", scale.initial != defaults.initial);
      return;
    }
    int exponent = 0;
    if (std::frexp(initial, &exponent) != 0.5) {
      warn(k_rounding_scale,
           path,
           fmt::format("{} is not a power of two, so scaling rounds", shortest(initial)));
    }
    if (scale.mode == LossScaleMode::fixed) return;
    if (scale.max && initial > *scale.max) {
      error(
          is_set(path) ? path : "precision.loss_scale.max",
          fmt::format(
              "the initial scale, {}, is above max, {}", shortest(initial), shortest(*scale.max)));
    }
    if (scale.min && initial < *scale.min) {
      error(
          is_set(path) ? path : "precision.loss_scale.min",
          fmt::format(
              "the initial scale, {}, is below min, {}", shortest(initial), shortest(*scale.min)));
    }
  }

  void overrides() {
    constexpr std::string_view k_regex = "re:";
    for (std::size_t i = 0; i < spec_.precision.overrides.size(); ++i) {
      const std::string& match = spec_.precision.overrides[i].match;
      const std::string path = item_path("precision.overrides", i) + ".match";
      if (!is_set(path)) continue;
      if (match.empty()) error(path, "must name a layer");
      if (!match.starts_with(k_regex)) continue;
      const Pattern pattern(match.substr(k_regex.size()));
      if (!pattern.problem().empty()) {
        error(path, fmt::format("'{}' is not a regular expression: {}", match, pattern.problem()));
      }
    }
  }

  void training() {
    if (const std::optional<std::string>& target = spec_.training.target) {
      if (const auto parsed = parse_target(*target)) {
        epoch_metric("training.target", parsed->metric);
      } else {
        error("training.target",
              fmt::format("must be a metric and a value, got '{}'", *target),
              "such as val_accuracy=0.97");
      }
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
      if (contains(std::span(metrics).first(i), metrics[i])) {
        error("metrics", fmt::format("'{}' is listed twice", metrics[i]));
      }
    }
  }

  /// A metric that a rule evaluates at the end of each epoch.
  void epoch_metric(std::string_view path, const std::string& metric) {
    const std::vector<std::string> known = spec_.epoch_metrics();
    if (contains(known, metric)) return;
    std::string message = fmt::format("no epoch has a metric '{}'", metric);
    if (metric.starts_with("val_") && spec_.data.validation_split == 0) {
      message += ": data.validation_split is 0";
    }
    // An error of a defaulted monitor is reported at the section that needs it.
    const bool monitor = path == "training.early_stopping.monitor" && !is_set(path);
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
      if (contains(k_report_formats, format)) continue;
      error(item_path("report.formats", i),
            fmt::format("must be one of {}, got '{}'", fmt::join(k_report_formats, ", "), format),
            did_you_mean(format, {k_report_formats.begin(), k_report_formats.end()}));
    }
  }
};

}  // namespace

void check(RunSpec& spec, Diagnostics& diagnostics) { Checks(spec, diagnostics).run(); }

}  // namespace halfstep::config

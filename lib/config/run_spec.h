#pragma once
// The settings of one run: the config as checked structs.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/data_spec.h"
#include "config/fields.h"
#include "config/precision_spec.h"
#include "config/training_spec.h"

namespace halfstep::config {

/// The section `model`: a list of layers, or a graph of named nodes, whose fields lib/nn reads.
/// Either `input` and `layers`, or `inputs`, `nodes` and `outputs`.
struct ModelSpec {
  std::vector<std::int64_t> input;  ///< extents of one sample
  Node layers;                      ///< a list of maps, each with a `type`
  std::vector<NamedExtents> inputs;
  Node nodes;   ///< a map from names to maps, each with a `type` and mostly a `from`
  Node blocks;  ///< expanded into `nodes` when a config is read; null then
  std::vector<std::string> outputs;

  bool sequential() const { return nodes.kind == Node::Kind::null; }
  void fields(Fields& f);
};

/// A setting that is valid but probably not intended.
struct Warning {
  std::string code;  ///< "W101"; stable
  Where where;
  std::string message;
};

/// Whether the loss compares real values, so that the outputs are no classes.
bool is_regression(std::string_view loss);

struct RunSpec {
  std::int64_t version = 1;
  std::string name = "run";
  std::int64_t seed = 0;
  DataSpec data;
  ModelSpec model;
  PrecisionSpec precision;
  /// Its type is not checked here; of several outputs also a map from outputs (config/outputs.h).
  Typed loss;
  std::vector<NamedNumber> loss_weights;  ///< by output; others weigh 1
  Typed optimizer;                        ///< its type is not checked here
  /// A config without metrics gets accuracy, for a regression mean_absolute_error. Those of several
  /// outputs are `<output>_<metric>`, and the first ones their losses.
  std::vector<std::string> metrics{"accuracy"};
  TrainingSpec training;
  ReportSpec report;
  DeviceSpec device;
  ParallelSpec parallel;
  SlurmSpec slurm;

  Node source;                    ///< the merged config as written; no field
  std::vector<Warning> warnings;  ///< no field

  /// The location of the value at a config path (`training.epochs`). A default value has no file,
  /// only the path.
  Where where(std::string_view path) const;
  /// Whether the model's only loss compares real values.
  bool regression() const { return is_regression(loss.type); }
  /// The metrics that an epoch has a value of: `loss` and `metrics`, with a validation split also
  /// with `val_` before.
  std::vector<std::string> epoch_metrics() const;
  void fields(Fields& f);
};

/// Reads and checks a merged config. Problems go to `diagnostics`; the result then holds the values
/// that could be read.
RunSpec parse_run_spec(const Node& node, Diagnostics& diagnostics);

/// Checks the rules that span several fields; part of parse_run_spec(). Errors go to `diagnostics`,
/// warnings to `spec.warnings`.
void check(RunSpec& spec, Diagnostics& diagnostics);

/// How a config is printed.
struct PrintOptions {
  bool minimal = false;         ///< leave out values equal to their default
  bool origins = false;         ///< add `  # file:line` or `  # default` to each line
  bool absolute_paths = false;  ///< so that the text can be read back from another directory
};

/// The config as YAML that reads back to the same RunSpec.
std::string print(const RunSpec& spec, const PrintOptions& options = {});

/// SHA-256 of the printed config with all defaults: equal for configs with the same settings.
std::string config_hash(const RunSpec& spec);

}  // namespace halfstep::config

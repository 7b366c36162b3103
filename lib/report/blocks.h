#pragma once
// Blocks that several kinds of report share. Each describes its fields once (core/fields.h): JSON
// writer, reader, schema and report diff use that description.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/step_precision.h"
#include "core/json_fields.h"
#include "core/statistics.h"
#include "data/dataset.h"
#include "plan/prepare_graph.h"
#include "report/json.h"
#include "train/step_time.h"

namespace halfstep::report {

/// A column of numbers; nothing where a value is unknown or was not finite.
using Column = std::vector<std::optional<double>>;
/// Values over a set of samples by name: "loss" and each metric.
using MetricsBlock = std::map<std::string, std::optional<double>>;

/// The first two members of every report.
void describe_kind(Fields& f, std::string_view kind);
/// `nonfinite`, the last member of a report.
void describe_nonfinite(Fields& f, NonfiniteMap& nonfinite);
/// The options of a field that is a MetricsBlock.
FieldOptions metrics_options(std::string_view doc);
MetricsBlock metrics_block(const train::Metrics& metrics);

/// A warning or a hint.
struct WarningBlock {
  std::string code;   ///< "W203"
  std::string where;  ///< layer or path in the config, "" without one
  std::string message;

  void fields(Fields& f);
  bool operator==(const WarningBlock&) const = default;
};
void describe_warnings(Fields& f, std::vector<WarningBlock>& warnings);
/// "W203 layer: message".
std::string warning_line(const WarningBlock& warning);

struct KernelCosts {
  std::string origin, xxh3_128;
  void fields(Fields& f);
};

struct Gpu {
  std::int64_t index = 0;
  std::string name, flavour, compute_capability;
  std::int64_t multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
  std::string driver, cublas;
  void fields(Fields& f);
};

struct Cpu {
  std::string model;
  std::vector<std::string> isa;
  std::optional<KernelCosts> kernel_costs;
  void fields(Fields& f);
};

struct Versions {
  std::string onednn, cuda, cudnn, nccl, mpi;
  void fields(Fields& f);
};

/// Machine and program that made a report; the content of env.json.
struct Context {
  std::string date, host_name, executable;
  std::int64_t num_cpus = 1, threads = 1;
  std::optional<bool> cpu_scaling_enabled;
  std::vector<double> load_avg;
  std::string library_version, library_build_type, compiler, git_commit;
  bool git_dirty = false;
  std::string device;
  Cpu cpu;
  std::vector<Gpu> gpu;
  Versions versions;
  void fields(Fields& f);
};

struct ConfigBlock {
  std::string sha256;
  Json resolved = Json::object();
  std::vector<std::string> overrides;
  void fields(Fields& f);
};

struct Steps {
  std::int64_t attempted = 0, applied = 0, ordinal = 0;
  void fields(Fields& f);
};
Steps steps_block(const train::Counters& counters);

struct ClassResult {
  std::int64_t label = 0;
  std::optional<std::string> name;
  std::int64_t count = 0, correct = 0;
  std::optional<double> accuracy;
  void fields(Fields& f);
};
struct Classes {
  std::vector<ClassResult> per_class;
  std::vector<std::vector<std::int64_t>> confusion;  ///< [label][prediction]
  void fields(Fields& f);
};
/// Results per class and confusion matrix; nothing without classes, and of several outputs.
std::optional<Classes> classes_block(const train::Evaluation& evaluation,
                                     const std::vector<std::string>& class_names);
struct OutputClasses {
  std::string output;  ///< of a model of several
  std::optional<Classes> classes;
  void fields(Fields& f);
};
/// Of each output, whose class names `dataset` has; nothing for a model of one.
std::optional<std::vector<OutputClasses>> output_classes(const train::Evaluation& evaluation,
                                                         const data::Dataset& dataset);

/// Statistics of 16-bit values on sampled steps.
struct Numerics {
  std::string mode;
  std::int64_t every = 1;
  std::vector<std::int64_t> sampled_steps;
  std::vector<train::TensorNumerics> tensors;
  void fields(Fields& f);
};

void describe_command(Fields& f, std::vector<std::string>& command);

}  // namespace halfstep::report

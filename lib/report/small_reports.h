#pragma once
// Reports of commands that use a model or data without training.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/table_encoding.h"
#include "report/blocks.h"

namespace halfstep::report {

struct EvalReport {
  static constexpr std::string_view k_kind = "eval", k_doc = "an evaluation of a checkpoint";
  std::string checkpoint, split;
  Context context;
  ConfigBlock config;
  analysis::Precision precision;
  std::string weights_hash;
  std::int64_t samples = 1;
  double seconds = 0;
  MetricsBlock metrics;
  std::optional<Classes> classes;
  std::optional<std::vector<OutputClasses>> outputs;
  std::vector<WarningBlock> warnings;
  NonfiniteMap nonfinite;
  void fields(Fields& f);
};

/// The prediction of an output for a sample.
struct SamplePrediction {
  std::optional<std::int64_t> label;
  MaybeNull<std::string> name;
  MaybeNull<double> probability;
  std::optional<Column> probabilities, values;
  std::optional<std::vector<std::int64_t>> labels;
  void fields(Fields& f);
};
struct PredictedOutput : SamplePrediction {
  std::string output;
  void fields(Fields& f);
};
struct PredictedImage : SamplePrediction {
  std::int64_t index = 0;
  std::string file;
  std::optional<std::vector<PredictedOutput>> outputs;  ///< of a model of several
  void fields(Fields& f);
};
struct PredictReport {
  static constexpr std::string_view k_kind = "predict",
                                    k_doc = "classes of images, or values of a regression";
  std::vector<PredictedImage> predictions;
  NonfiniteMap nonfinite;
  void fields(Fields& f);
};

struct DataFile {
  std::string path, sha256;
  void fields(Fields& f);
};
struct DataInput {
  std::string name;
  std::vector<std::int64_t> shape;
  void fields(Fields& f);
};
struct DataOutput {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t classes = 0;
  std::vector<std::string> class_names;
  void fields(Fields& f);
};
struct DataReport {
  static constexpr std::string_view k_kind = "data", k_doc = "a data set";
  std::string name, source, origin, licence;
  std::int64_t classes = 0;
  std::vector<std::string> class_names;
  std::vector<data::ColumnEncoding> columns;
  std::vector<DataInput> inputs;
  std::optional<std::vector<DataOutput>> outputs;  ///< of a model of several
  std::vector<std::int64_t> sample_shape;
  std::string dtype, layout;
  std::int64_t train_samples = 0, test_samples = 0;
  std::int64_t left_out_samples = 0;
  std::int64_t resized_samples = 0, converted_samples = 0;
  std::optional<std::vector<std::int64_t>> train_per_class, test_per_class;
  std::string content_hash;
  std::vector<DataFile> files;
  void fields(Fields& f);
};

struct LayerSummary {
  std::string name, type, output;
  std::vector<std::string> further_outputs;
  std::string output_dtype, policy;
  std::int64_t trainable_parameters = 0, fixed_parameters = 0;
  double forward_flops = 0;
  void fields(Fields& f);
};
struct ModelReport {
  static constexpr std::string_view k_kind = "model", k_doc = "a model";
  std::int64_t batch_size = 1;
  std::vector<LayerSummary> layers;
  std::int64_t trainable_parameters = 0, fixed_parameters = 0;
  double forward_flops = 0;
  std::uint64_t planned_state_bytes = 0, planned_arena_bytes = 0;
  void fields(Fields& f);
};

struct ModelExportReport {
  static constexpr std::string_view k_kind = "model_export",
                                    k_doc = "weights of a model written to a file";
  std::string file, checkpoint;
  std::uint64_t tensors = 0;
  std::string dtype;
  void fields(Fields& f);
};

struct DryRunReport {
  static constexpr std::string_view k_kind = "dry_run",
                                    k_doc = "one step of a run, to measure its memory";
  std::int64_t exit_code = 0;
  train::MemoryUse memory;
  void fields(Fields& f);
};

/// `explain --graph`, written by precision::to_json.
struct RewrittenNode {
  std::string name, op;
  std::vector<std::pair<std::string, std::vector<std::string>>> attrs;
  void fields(Fields& f);
};
struct InsertedCast {
  std::string name, from, to, input;
  std::vector<std::string> consumers;
  void fields(Fields& f);
};
struct PaintedAttr {
  std::string node, attr, paint, step, reason;
  void fields(Fields& f);
};
struct GraphRewriteReport {
  static constexpr std::string_view k_kind = "graph_rewrite",
                                    k_doc = "the rewrite of a written graph";
  std::string mode, status, message;
  std::vector<RewrittenNode> nodes;
  std::vector<InsertedCast> casts;
  std::int64_t converted_attrs = 0, casts_counted = 0;
  std::vector<PaintedAttr> paint;
  void fields(Fields& f);
};

}  // namespace halfstep::report

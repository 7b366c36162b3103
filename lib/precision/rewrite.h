#pragma once
// The automatic rewrite of a whole graph to 16 bits, by the rules of TensorFlow's grappler pass
// auto_mixed_precision: paint, retype the allowed vertices, insert casts where paint changes.

#include <set>
#include <string>
#include <vector>

#include "config/precision_spec.h"
#include "precision/paint.h"

namespace halfstep::precision {

/// The target device of the rewrite.
struct DeviceInfo {
  /// "sm_80", "8.0", "8" (= 8.0), "gfx908"; any other text counts as an unsuitable GPU. The
  /// default, with the versions, is the GPU that TensorFlow simulates where there is none. Mode
  /// fp16_cpu recognizes names of CPUs ("avx512", "amx") that do not compute in float16.
  std::string arch = "sm_80";
  int cuda_version = 11050;
  int cudnn_version = 8302;
};

struct RewriteOptions {
  Mode mode = Mode::cuda;
  Level level = Level::standard;
  std::vector<ListEdits> edits;  ///< applied in this order
  DeviceInfo device;
  bool ignore_performance = false;  ///< rewrite for slow GPUs too
  /// Rewrite nodes whatever device they are assigned to: for training, where the run decides the
  /// device.
  bool waive_device_gates = false;
  bool emulate = true;  ///< mode cpu: keep ops in float32 between casts
  config::RewriteRules rules = config::RewriteRules::tensorflow_2_19;
  std::set<std::string> functions;  ///< the graph's own function library
  /// Whether a kernel exists; absent: one exists for every dtype that an op allows.
  std::function<bool(std::string_view op, DType dtype)> supports = {};

  /// Whether infer ops directly after a converted op are converted: up to TensorFlow 2.19 in mode
  /// bf16 alone, from 2.20 on in every mode.
  bool infer_follows() const {
    return mode == Mode::bf16 || rules == config::RewriteRules::tensorflow_2_20;
  }
  DType target() const { return mode == Mode::bf16 ? DType::bfloat16 : DType::float16; }
};

/// Options for training with the rewrite. float16: the CUDA lists for the newest libraries;
/// bfloat16: the bf16 lists; no device gates.
RewriteOptions training_options(DType target);

struct InsertedCast {
  std::string name;
  DType from = DType::float32;
  DType to = DType::float32;
  std::string input;                   ///< "node:port"
  std::vector<std::string> consumers;  ///< in graph order, each once
  int node = -1;                       ///< in the rewritten graph
};

/// failed: the graph is unchanged and `message` gives the reason. A graph that the device gates
/// exclude is returned unchanged with status ok, as in TensorFlow; `message` says so.
enum class RewriteStatus { ok, nothing_to_do, failed };

std::span<const std::string_view> names_of(RewriteStatus);
std::string_view name(RewriteStatus status);

struct RewriteResult {
  RewriteStatus status = RewriteStatus::ok;
  std::string message;
  graph::Graph graph;
  std::vector<int> nodes;  ///< the index in `graph` of each node of the input graph
  std::vector<InsertedCast> casts;
  int nodes_converted = 0;           ///< nodes with at least one attribute changed
  int converted_attrs = 0;           ///< type attributes changed
  int casts_counted = 0;             ///< casts to 16 bits, except those of constants and variables
  std::vector<PaintedVertex> paint;  ///< empty when failed; `node` counts the input graph's nodes
};

/// Accepts imported graphs and executable ones, whose nodes keep shapes and origins; fetches and
/// nodes marked `preserve` keep their dtypes. A cast is inserted right before its first consumer.
RewriteResult rewrite(graph::Graph graph, const graph::OpTable& ops, const RewriteOptions& options);

/// Whether TensorFlow considers a GPU fast in 16 bits: compute capability 7.0 or more, gfx906,
/// gfx908.
bool is_suitable_gpu(std::string_view arch);

}  // namespace halfstep::precision

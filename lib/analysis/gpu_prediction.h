#pragma once
// Predicted times of launches on a GPU: a launch takes as long as its multiplications or as its
// bytes, at rates that a GPU of its generation sustains, and the gap between two nodes of a
// captured graph for each of its nodes.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/fields.h"
#include "train/session.h"

namespace halfstep::analysis {

/// Sustained rates of one GPU of a generation. Those of the H100 are a large matmul's and a large
/// copy's; those of other GPUs are 80 % of the data sheet's.
struct GpuRates {
  int from;                                      ///< compute capability, 90 for 9.0
  std::string_view gpu;                          ///< "H100 SXM"
  double half_flops, tf32_flops, float32_flops;  ///< per second
  double bytes;                                  ///< per second
};

/// The rates for the newest generation that is not newer than `compute_capability`; nullptr before
/// 7.5.
const GpuRates* gpu_rates(int compute_capability);

/// The nodes of the captured graph that run `node`, a node of `graph`, by `kernel`. A call of a
/// library counts as one; where they depend on more than the attributes (the gradient of windows
/// that overlap, operands that are copied for a library), the usual case.
std::int64_t graph_nodes(const graph::Graph& graph,
                         const graph::Node& node,
                         std::string_view kernel);

struct PredictedLaunch {
  std::string name, type, layer, phase, kernel;
  double flops = 0, bytes = 0;
  std::int64_t graph_nodes = 1;  ///< several for each step of a recurrent layer
  double ms = 0;
  void fields(Fields& f);
};

struct StepPrediction {
  std::string gpu;  ///< "H100 SXM": whose rates are used
  double ms = 0;    ///< sum of the launches
  std::vector<PredictedLaunch> launches;
  void fields(Fields& f);

  /// The predicted time of a launch; nothing where no launch has that name.
  std::optional<double> ms_of(std::string_view name) const;
};

/// The kernel of each node of a lowered graph on a backend that need not be present.
std::vector<plan::KernelChoice> kernels_of(const graph::Graph& lowered,
                                           const backend::Backend& backend);

/// The launches of a lowered training step that gathers its own batches, by `kernels`, in the order
/// of its nodes. Nothing for GPUs before compute capability 7.5.
std::optional<StepPrediction> predict_step(const graph::Graph& lowered,
                                           std::span<const plan::KernelChoice> kernels,
                                           int compute_capability,
                                           bool tf32);
/// The prediction for the training plan of a session on a device; nothing on a CPU.
std::optional<StepPrediction> predict_step(train::Session& session);

}  // namespace halfstep::analysis

#pragma once
// The predicted time of a training step on a GPU, launch by launch.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/fields.h"
#include "plan/plan.h"
#include "train/session.h"

namespace halfstep::report {

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

/// The launches of a lowered training step that gathers its own batches. `kernel_of` gives the
/// kernel of a node, "" for nodes without a launch. Nothing for GPUs before compute capability 7.5.
std::optional<StepPrediction> predict_step(const graph::Graph& lowered,
                                           const std::function<std::string(int)>& kernel_of,
                                           int compute_capability,
                                           bool tf32);
/// The prediction for the training plan of a session on a device; nothing on a CPU.
std::optional<StepPrediction> predict_step(train::Session& session);

}  // namespace halfstep::report

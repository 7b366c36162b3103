#pragma once
// Learning-rate schedules: `learning_rate: 1e-3`, or a map such as `{type: cosine_decay,
// initial_learning_rate: 0.1, decay_steps: 1000, warmup_steps: 100}`. The LearningRate op computes
// the rate from the step counter inside the graph.

#include <memory>
#include <span>
#include <string_view>

#include "config/fields.h"
#include "graph/builder.h"

namespace halfstep::nn {

/// The attributes of the LearningRate op for a config.
/// Problems go to `diagnostics`; `fallback` is the rate when nothing is given.
graph::Attrs read_schedule(const config::Node& node, double fallback, Diagnostics& diagnostics);

struct ScheduleDef {
  std::string_view type;
  std::string_view doc;
  std::string_view example;  ///< as written in a config, for a run of a thousand steps
  void (*fields)(config::Fields& f) = nullptr;
  graph::Attrs (*read)(const config::Node& node, Diagnostics& diagnostics) = nullptr;
};

std::span<const ScheduleDef> schedule_table();

}  // namespace halfstep::nn

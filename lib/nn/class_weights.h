#pragma once
// training.class_weight: the weight of each class in the loss.

#include <span>
#include <string>
#include <vector>

#include "config/run_spec.h"
#include "nn/trained_output.h"

namespace halfstep::nn {

/// The weights of all classes, by class number; empty where the config has none. A key is a class
/// name where `names` (by class number) contains it, else a class number. Without `names`,
/// data.class_names are used, and keys that may name classes of data not loaded yet are ignored.
/// Keys that are not a class of the data or the model are reported to `diagnostics`.
std::vector<double> read_class_weights(const config::RunSpec& spec,
                                       std::span<const TrainedOutput> outputs,
                                       std::span<const std::string> names,
                                       Diagnostics& diagnostics);

}  // namespace halfstep::nn

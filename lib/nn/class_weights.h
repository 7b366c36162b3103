#pragma once
// training.class_weight: factors of the losses of classes, which the config names or numbers.

#include <span>
#include <string>
#include <vector>

#include "config/run_spec.h"
#include "nn/trained_output.h"

namespace halfstep::nn {

/// The weights of all classes, by number; none where the config gives none. A key is the name of a
/// class where `names`, by class number, has it, else a class number. Without `names`, those of
/// data.class_names are taken, and keys that may be names of data which are not loaded yet are
/// passed over. Keys that are no class of the data or the model go to `diagnostics`.
std::vector<double> read_class_weights(const config::RunSpec& spec,
                                       std::span<const TrainedOutput> outputs,
                                       std::span<const std::string> names,
                                       Diagnostics& diagnostics);

}  // namespace halfstep::nn

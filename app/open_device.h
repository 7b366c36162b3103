#pragma once
// The device that a run computes on.

#include "backend/backend.h"
#include "backend/cuda/plugin_library.h"
#include "config/run_spec.h"

namespace halfstep::app {

/// HALFSTEP_MAX_ISA: what kernels may use at most. Errors: UserError(config) for an unknown word.
backend::Isa most_isa();

/// The file in the user's cache that holds the cost model of this processor, instruction set and
/// version of oneDNN, written by `halfstep tune`; "" when the environment names no cache.
std::string cost_model_path(const backend::Capabilities& capabilities);

/// Where the CUDA plugin is looked for: HALFSTEP_CUDA_PLUGIN, else beside the program.
backend::cuda::PluginSearch plugin_search();

/// Why no GPU can be used as far as it shows without loading anything; nothing when one may be.
std::optional<backend::cuda::Absence> obvious_absence(const backend::cuda::PluginSearch& search);

/// The device a config asks for, with its threads set. `auto` takes a GPU where there is one and
/// otherwise notes why it does not. The CPU's kernels are chosen by the cost model in `run_dir`,
/// the directory of a run that is resumed, if it has one, so that they are the same; else by the
/// one that `halfstep tune` measured, else by the shipped one. Errors: UserError(unavailable)
/// naming reason and remedy, unless precision.fallback is warn, where the CPU takes the place of a
/// GPU that is not there; UserError(data) for a damaged cost model.
backend::Backend open_device(const config::RunSpec& spec, const std::string& run_dir = {});

/// Tells the user in one line why the device is not a GPU, if `auto` looked for one.
void say_device(const backend::Backend& device);

}  // namespace halfstep::app

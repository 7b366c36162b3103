#pragma once
// The device that a run computes on.

#include "backend/backend.h"
#include "backend/cuda/plugin_library.h"
#include "config/run_spec.h"

namespace halfstep::app {

/// HALFSTEP_MAX_ISA: what kernels may use at most. Errors: UserError(config) for an unknown word.
backend::Isa most_isa();

/// Where the CUDA plugin is looked for: HALFSTEP_CUDA_PLUGIN, else beside the program.
backend::cuda::PluginSearch plugin_search();

/// Why no GPU can be used as far as it shows without loading anything; nothing when one may be.
std::optional<backend::cuda::Absence> obvious_absence(const backend::cuda::PluginSearch& search);

/// The device a config asks for, with its threads set. `auto` takes a GPU where there is one and
/// otherwise notes why it does not.
/// Errors: UserError(unavailable) naming reason and remedy.
backend::Backend open_device(const config::RunSpec& spec);

/// Tells the user in one line why the device is not a GPU, if `auto` looked for one.
void say_device(const backend::Backend& device);

}  // namespace halfstep::app

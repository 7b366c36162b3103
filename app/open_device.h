#pragma once
// The compute device of a run.

#include "backend/backend.h"
#include "backend/cuda/plugin.h"
#include "config/run_spec.h"
#include "ranks.h"

namespace halfstep::app {

/// HALFSTEP_MAX_ISA, the best instruction set that kernels may use. Errors: UserError(config) for
/// an unknown name.
backend::Isa max_isa();

/// The file in the user's cache with the cost model for this processor, instruction set and version
/// of oneDNN, written by `halfstep tune`; "" when the environment defines no cache.
std::string cost_model_path(const backend::Capabilities& capabilities);

/// The search path of the CUDA plugin: HALFSTEP_CUDA_PLUGIN, else the folder of the program.
backend::cuda::PluginSearch plugin_search();

/// Why no GPU can be used, as far as it can be determined without loading a library; nothing when
/// one may exist.
std::optional<backend::cuda::Unavailable> without_driver(const backend::cuda::PluginSearch& search);

/// The device of a config, with its thread count set. `auto` uses a GPU if there is one and
/// otherwise stores the reason in the note. The CPU's kernels are chosen by the cost model in
/// `run_dir`, the directory of a resumed run, if it has one, so that the choice is the same; else
/// by the one of `halfstep tune`, else by the shipped one. Errors: UserError(unavailable) with
/// reason and remedy, unless precision.fallback is warn, where the CPU replaces an unavailable GPU;
/// UserError(data) for a damaged cost model.
/// `ranks`: of the run, which share the processors and GPUs of their host; nullptr: none.
backend::Backend open_device(const config::RunSpec& spec,
                             const std::string& run_dir = {},
                             const Ranks* ranks = nullptr);

/// Prints the device and why it is not a GPU, where open_device() chose the CPU for want of one.
void print_device(const backend::Backend& device);

}  // namespace halfstep::app

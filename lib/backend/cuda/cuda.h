#pragma once
// The CUDA backend: what this machine has of it, and a device opened as a Backend.

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/plugin_library.h"

namespace halfstep::backend::cuda {

/// A cheap look, without loading anything: whether this system has an NVIDIA driver.
bool driver_in_sight();

struct DeviceRow {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  int compute_capability = 0;
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
};

/// What there is; versions are empty for what is not there.
struct Survey {
  std::optional<Absence> absence;  ///< why no device can be used, if so
  std::string plugin;              ///< path
  std::string flavour;             ///< "cuda", "emulated"
  std::string driver, runtime, cublas, cudnn, nccl;
  std::vector<DeviceRow> devices;
};
Survey survey(const PluginSearch& search);

struct DeviceOptions {
  int index = 0;
  bool tf32 = false;               ///< float32 products may round their operands
  bool deterministic = true;       ///< equal runs give equal bits
  bool measure = false;            ///< time candidates of products and convolutions
  std::uint64_t memory_limit = 0;  ///< bytes to use at most; 0 for all there are
  std::string tuning_folder;       ///< what was measured is kept there; "" keeps nothing
};

/// Opens a device, or says why it cannot be.
/// Errors: UserError(memory) when the device's memory is taken already.
std::variant<Backend, Absence> open(const PluginSearch& search, const DeviceOptions& options);

}  // namespace halfstep::backend::cuda

#pragma once
// The CUDA backend: detection of devices and libraries, and opening a device as a Backend.

#include <memory>
#include <string>
#include <variant>

#include "backend/backend.h"
#include "backend/cuda/plugin.h"
#include "comm/communicator.h"

namespace halfstep::backend::cuda {

/// Whether this system has an NVIDIA driver; cheap, loads no library.
bool driver_in_sight();

/// The detected plugin, libraries and devices.
struct Detection : DeviceProbe {
  std::string plugin;   ///< path; "" without one
  std::string flavour;  ///< "cuda", "emulated"
};
Detection detect(const PluginSearch& search);

/// Opens a device, or returns why it is unavailable. Errors: UserError(memory) when the device's
/// memory is in use already.
std::variant<Backend, Unavailable> open(const PluginSearch& search, const DeviceOptions& options);

/// Joins the opened devices of all ranks, so that steps add over them (NCCL). All ranks call it.
/// Errors: UserError(unavailable) where NCCL cannot be used by all; UserError(config) where two
/// ranks have one GPU; comm::RankLost.
void join_ranks(const Backend& backend, const std::shared_ptr<comm::Communicator>& ranks);

}  // namespace halfstep::backend::cuda

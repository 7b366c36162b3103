#pragma once
// The CUDA backend: detection of devices and libraries, and opening a device as a Backend.

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/plugin_library.h"
#include "comm/communicator.h"

namespace halfstep::backend::cuda {

/// Whether this system has an NVIDIA driver; cheap, loads no library.
bool driver_in_sight();

struct DeviceRow {
  std::string name;  ///< "NVIDIA H100 80GB HBM3"
  std::string uuid;  ///< the same in all processes; "" where there is none
  int compute_capability = 0;
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
};

/// The result of the detection; versions are empty for absent components.
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
  /// Among the ranks of this host, which use the devices from `index` on. Where a rank sees one
  /// device alone, as with a GPU for each task, it uses that.
  int local_rank = 0;
  bool tf32 = false;          ///< float32 matmuls and convolutions may round their operands to TF32
  bool deterministic = true;  ///< equal runs are bit-identical
  bool measure = false;       ///< time the candidates of matmuls and convolutions
  std::uint64_t memory_limit = 0;  ///< limit on allocated bytes; 0: all device memory
  std::string tuning_folder;       ///< of the measured choices; "": not stored
};

/// Opens a device, or returns why it is unavailable. Errors: UserError(memory) when the device's
/// memory is in use already.
std::variant<Backend, Absence> open(const PluginSearch& search, const DeviceOptions& options);

/// Joins the opened devices of all ranks, so that steps add over them (NCCL). All ranks call it.
/// Errors: UserError(unavailable) where NCCL cannot be used by all; UserError(config) where two
/// ranks have one GPU; comm::RankLost.
void join_ranks(const Backend& backend, const std::shared_ptr<comm::Communicator>& ranks);

}  // namespace halfstep::backend::cuda

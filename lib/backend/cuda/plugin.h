#pragma once
// The CUDA plugin: a shared library that is opened at run time, so that the program starts without
// CUDA's libraries. Program and plugin exchange C++ objects, hence both must be of one build.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backend/device.h"
#include "backend/memory.h"
#include "comm/communicator.h"

namespace halfstep::backend::cuda {

/// Why a component is unavailable, and how to fix it.
struct Unavailable {
  std::string reason;
  std::string remedy;
};

struct GpuInfo {
  std::string name;       ///< "NVIDIA H100 80GB HBM3"
  std::string uuid = {};  ///< the same in all processes of the machine; "" of an emulated device
  int compute_capability = 0;  ///< 10 * major + minor: 90
  int multiprocessors = 0;
  std::uint64_t memory_bytes = 0;
  std::size_t l2_bytes = 0;
};

/// The installed components. Versions are "13.0"; "" for absent components.
struct DeviceProbe {
  std::optional<Unavailable> unavailable;  ///< set when no device can be opened
  std::string driver;                      ///< highest CUDA version that the driver supports
  std::string runtime, cublas, cudnn, nccl;
  std::vector<GpuInfo> devices;
};

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

/// An opened device with its memory. Errors of all members: UserError(memory) when device memory
/// does not suffice, UserError(unavailable) when there is no device, UserError(ranks) when another
/// rank or the network fails, else InternalError with the library's message.
class Gpu : public Memory, public Device {
 public:
  /// A new id under which ranks join (ncclUniqueId). Errors: UserError(unavailable) without NCCL.
  virtual std::string new_rank_id() const = 0;
  /// Joins the device to those of the other ranks; blocks until all have called it. From then on
  /// blocking calls check the other ranks.
  virtual void join(const std::string& id, std::shared_ptr<comm::Communicator> ranks) = 0;
};

/// The interface that a plugin exports.
struct Plugin {
  const char* build_id;      ///< first, since only a plugin of the program's own build_id() matches
  std::string_view flavour;  ///< "cuda", or "emulated": host memory instead of a device
  DeviceProbe (*probe)();    ///< opens no device and never throws
  std::vector<std::string_view> (*kernels)();  ///< the names of the kernels that it prepares
  /// Opens device `index`. Errors: those of Gpu.
  std::shared_ptr<Gpu> (*open)(const DeviceOptions& options);
};

/// The exported function, a `const Plugin* ()` with C linkage.
constexpr const char* k_plugin_entry = "halfstep_cuda_plugin";
constexpr std::string_view k_plugin_file = "libhalfstep_cuda.so";

/// A hash of the headers, compiler and options that this code was built with.
const char* build_id();

/// The search for a plugin.
struct PluginSearch {
  std::string given;                 ///< an explicit file; "": search the folders
  std::vector<std::string> folders;  ///< the first one that contains k_plugin_file is used
};

/// The folders relative to a program at `executable` in which a plugin is installed.
std::vector<std::string> plugin_folders(const std::string& executable);

struct OpenedPlugin {
  std::string path;
  const Plugin* plugin;  ///< stays loaded until the process ends
};

/// Opens the plugin, or returns why it is unavailable.
std::variant<OpenedPlugin, Unavailable> open_plugin(const PluginSearch& search);

}  // namespace halfstep::backend::cuda

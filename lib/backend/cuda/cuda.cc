#include "backend/cuda/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <filesystem>
#include <thread>

#include "backend/cuda/kernel_table.h"
#include "core/error.h"

namespace halfstep::backend::cuda {
bool driver_in_sight() {
  static constexpr std::array k_signs{
      "/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/proc/driver/nvidia/version"};
  std::error_code error;
  for (const char* sign : k_signs) {
    if (std::filesystem::exists(sign, error)) return true;
  }
  return false;
}

Detection detect(const PluginSearch& search) {
  const auto opened = open_plugin(search);
  if (const Unavailable* unavailable = std::get_if<Unavailable>(&opened)) {
    Detection none;
    none.unavailable = *unavailable;
    return none;
  }
  const auto& [path, plugin] = std::get<OpenedPlugin>(opened);
  return {plugin->probe(), path, std::string(plugin->flavour)};
}

std::variant<Backend, Unavailable> open(const PluginSearch& search, const DeviceOptions& options) {
  const auto opened = open_plugin(search);
  if (const Unavailable* unavailable = std::get_if<Unavailable>(&opened)) return *unavailable;
  const Plugin& plugin = *std::get<OpenedPlugin>(opened).plugin;
  const DeviceProbe found = plugin.probe();
  if (found.unavailable) return *found.unavailable;
  const auto devices = static_cast<int>(found.devices.size());
  const int index = options.index + (devices > 1 ? options.local_rank : 0);
  if (index >= devices && options.local_rank > 0) {
    return Unavailable{
        fmt::format("rank {} of this host, from 0, has no GPU: {} can be used here from "
                    "cuda:{} on",
                    options.local_rank,
                    devices - options.index,
                    options.index),
        "start no more ranks on a host than it has GPUs, or use --device cpu"};
  }
  if (index >= devices) {
    return Unavailable{fmt::format("there is no device {}", index),
                       devices == 1 ? "the only one is cuda:0"
                                    : fmt::format("the last one is cuda:{}", devices - 1)};
  }
  const GpuInfo& device = found.devices[static_cast<std::size_t>(index)];
  DeviceOptions of_index = options;
  of_index.index = index;
  const std::shared_ptr<Gpu> gpu = plugin.open(of_index);
  Backend backend;
  backend.name = "cuda";
  backend.kernels = kernel_table();
  backend.capabilities.compute_capability = device.compute_capability;
  backend.memory = gpu;
  backend.device = gpu;
  backend.device_info = {.name = device.name,
                         .uuid = device.uuid,
                         .flavour = std::string(plugin.flavour),
                         .index = index,
                         .multiprocessors = device.multiprocessors,
                         .memory_bytes = device.memory_bytes,
                         .driver = found.driver,
                         .runtime = found.runtime,
                         .cublas = found.cublas,
                         .cudnn = found.cudnn};
  return backend;
}

void join_ranks(const Backend& backend, const std::shared_ptr<comm::Communicator>& ranks) {
  const auto gpu = std::dynamic_pointer_cast<Gpu>(backend.memory);
  require(gpu != nullptr, "{} has no ranks to join", backend.name);
  // Each rank makes an id, so that all learn of one that cannot.
  std::string id, problem;
  try {
    id = gpu->new_rank_id();
  } catch (const UserError& error) {
    problem = error.problems().front().message;
  }
  const std::vector<std::string> problems = ranks->gather(problem);
  const std::vector<std::string> uuids = ranks->gather(backend.device_info.uuid);
  const std::string first_id = ranks->gather(id).front();
  for (std::size_t r = 0; r < problems.size(); ++r) {
    if (!problems[r].empty()) {
      throw UserError(ErrorKind::unavailable, {}, fmt::format("rank {}: {}", r, problems[r]));
    }
    const auto other = std::find(uuids.begin(), uuids.end(), uuids[r]) - uuids.begin();
    if (uuids[r].empty() || other == static_cast<std::ptrdiff_t>(r)) continue;
    throw UserError(
        ErrorKind::config,
        {},
        fmt::format("ranks {} and {} have the same GPU ({})", other, r, uuids[r]),
        "NCCL adds over GPUs that differ: start one rank for each GPU, and let each see "
        "all of the host or its own (srun --gpus-per-task=1)");
  }
  // On a thread of its own, since NCCL waits without end for a rank that is lost meanwhile. That
  // thread shares ownership of the device, and ends with the process.
  struct Joining {
    std::atomic<bool> done = false;
    std::exception_ptr error;
  };
  const auto joining = std::make_shared<Joining>();
  std::thread([=] {
    try {
      gpu->join(first_id, ranks);
    } catch (...) {
      joining->error = std::current_exception();
    }
    joining->done = true;
  }).detach();
  ranks->wait_for([&] { return joining->done.load(); });
  if (joining->error) std::rethrow_exception(joining->error);
}

}  // namespace halfstep::backend::cuda

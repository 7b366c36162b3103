#include "backend/cuda/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <filesystem>
#include <thread>

#include "backend/cuda/remote_device.h"
#include "backend/cuda/rows.h"
#include "core/error.h"

namespace halfstep::backend::cuda {
namespace {

using boundary::Status;

/// Splits a vendor's "reason; remedy".
Absence absence_of(std::string_view text) {
  const std::size_t end = text.find("; ");
  if (end == std::string_view::npos) return {std::string(text), "use --device cpu"};
  return {std::string(text.substr(0, end)), std::string(text.substr(end + 2))};
}

/// Fills `survey` with the results of the plugin's probe.
void look(const boundary::Table& table, Survey& survey) {
  boundary::Versions versions{};
  std::int32_t count = 0;
  survey.flavour = table.flavour;
  const Status status = table.probe(&versions, &count);
  survey.driver = versions.driver;
  survey.runtime = versions.runtime;
  survey.cublas = versions.cublas;
  survey.cudnn = versions.cudnn;
  if (status != Status::ok) {
    survey.absence = absence_of(table.last_error());
    return;
  }
  for (std::int32_t i = 0; i < count; ++i) {
    boundary::DeviceFacts facts{};
    if (table.facts(i, &facts) != Status::ok) continue;
    survey.devices.push_back({facts.name,
                              facts.uuid,
                              facts.compute_capability,
                              facts.multiprocessors,
                              facts.memory_bytes});
  }
}

}  // namespace

bool driver_in_sight() {
  static constexpr std::array k_signs{
      "/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/proc/driver/nvidia/version"};
  std::error_code error;
  for (const char* sign : k_signs) {
    if (std::filesystem::exists(sign, error)) return true;
  }
  return false;
}

Survey survey(const PluginSearch& search) {
  Survey survey;
  const auto opened = open_plugin(search);
  if (const Absence* absence = std::get_if<Absence>(&opened)) {
    survey.absence = *absence;
    return survey;
  }
  const auto& library = std::get<std::shared_ptr<PluginLibrary>>(opened);
  survey.plugin = library->path();
  look(library->table(), survey);
  std::array<char, 32> nccl{};
  library->table().nccl(nccl.data(), nccl.size());
  survey.nccl = nccl.data();
  return survey;
}

std::variant<Backend, Absence> open(const PluginSearch& search, const DeviceOptions& options) {
  const auto opened = open_plugin(search);
  if (const Absence* absence = std::get_if<Absence>(&opened)) return *absence;
  const auto& library = std::get<std::shared_ptr<PluginLibrary>>(opened);
  Survey found;
  look(library->table(), found);
  if (found.absence) return *found.absence;
  const auto devices = static_cast<int>(found.devices.size());
  const int index = options.index + (devices > 1 ? options.local_rank : 0);
  if (index >= devices && options.local_rank > 0) {
    return Absence{fmt::format("rank {} of this host, from 0, has no GPU: {} can be used here from "
                               "cuda:{} on",
                               options.local_rank,
                               devices - options.index,
                               options.index),
                   "start no more ranks on a host than it has GPUs, or use --device cpu"};
  }
  if (index >= devices) {
    return Absence{fmt::format("there is no device {}", index),
                   devices == 1 ? "the only one is cuda:0"
                                : fmt::format("the last one is cuda:{}", devices - 1)};
  }
  const DeviceRow& device = found.devices[static_cast<std::size_t>(index)];
  const boundary::Options plain{.device = index,
                                .tf32 = options.tf32 ? 1 : 0,
                                .deterministic = options.deterministic ? 1 : 0,
                                .measure = options.measure ? 1 : 0,
                                .tuning_folder = options.tuning_folder.c_str(),
                                .memory_limit = options.memory_limit};
  const auto remote = std::make_shared<RemoteDevice>(library, plain);
  Backend backend;
  backend.name = "cuda";
  backend.kernels = rows();
  backend.capabilities.compute_capability = device.compute_capability;
  backend.memory = remote;
  backend.device = remote;
  backend.facts = {.name = device.name,
                   .uuid = device.uuid,
                   .flavour = found.flavour,
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
  const auto remote = std::dynamic_pointer_cast<RemoteDevice>(backend.memory);
  require(remote != nullptr, "{} has no ranks to join", backend.name);
  // Each rank makes an id, so that all learn of one that cannot.
  std::string id, problem;
  try {
    id = remote->new_rank_id();
  } catch (const UserError& error) {
    problem = error.problems().front().message;
  }
  const std::vector<std::string> problems = ranks->gather(problem);
  const std::vector<std::string> uuids = ranks->gather(backend.facts.uuid);
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
      remote->join(first_id, ranks);
    } catch (...) {
      joining->error = std::current_exception();
    }
    joining->done = true;
  }).detach();
  ranks->wait_for([&] { return joining->done.load(); });
  if (joining->error) std::rethrow_exception(joining->error);
}

}  // namespace halfstep::backend::cuda

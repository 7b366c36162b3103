#include "backend/cuda/cuda.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>

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
    survey.devices.push_back(
        {facts.name, facts.compute_capability, facts.multiprocessors, facts.memory_bytes});
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
  if (options.index >= devices) {
    return Absence{fmt::format("there is no device {}", options.index),
                   devices == 1 ? "the only one is cuda:0"
                                : fmt::format("the last one is cuda:{}", devices - 1)};
  }
  const DeviceRow& device = found.devices[static_cast<std::size_t>(options.index)];
  const boundary::Options plain{.device = options.index,
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
  backend.capabilities.deterministic = options.deterministic;
  backend.memory = remote;
  backend.device = remote;
  backend.facts = {.name = device.name,
                   .flavour = found.flavour,
                   .index = options.index,
                   .multiprocessors = device.multiprocessors,
                   .memory_bytes = device.memory_bytes,
                   .driver = found.driver,
                   .runtime = found.runtime,
                   .cublas = found.cublas,
                   .cudnn = found.cudnn};
  return backend;
}

}  // namespace halfstep::backend::cuda

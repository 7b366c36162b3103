#include "report/context.h"

#include <fmt/format.h>

#include "backend/cost_model.h"
#include "comm/communicator.h"
#include "config/printer.h"
#include "core/hash.h"
#include "core/parallel.h"
#include "core/parse_number.h"
#include "core/system.h"

namespace halfstep::report {
namespace {

Json scalar(const config::Node& node) {
  const std::string& text = node.text;
  if (node.quoted) return utf8(text);
  if (text == "null") return nullptr;
  if (text == "true" || text == "false") return text == "true";
  if (const auto integer = parse_number<std::int64_t>(text)) return *integer;
  // Words such as NA's "nan" stay text: JSON has no number for them.
  const auto real = parse_number<double>(text);
  return real && std::isfinite(*real) ? Json(*real) : Json(utf8(text));
}

/// The device of the backend, if it is not the CPU.
std::vector<Gpu> gpus(const backend::Backend& backend) {
  if (!backend.device) return {};
  const int capability = backend.capabilities.compute_capability;
  return {{backend.device_info.index,
           backend.device_info.name,
           backend.device_info.flavour,
           fmt::format("{}.{}", capability / 10, capability % 10),
           backend.device_info.multiprocessors,
           backend.device_info.memory_bytes,
           backend.device_info.driver,
           backend.device_info.cublas}};
}

/// The measurements that chose the CPU's kernels; nothing if there are none.
std::optional<KernelCosts> kernel_costs(const backend::Backend& backend) {
  const backend::CostModel& costs = backend::cost_model(backend.capabilities);
  if (backend.device || costs.samples().empty()) return std::nullopt;
  return KernelCosts{std::string(costs.origin()), Hasher().add(costs.text()).hex()};
}

}  // namespace

Json to_json(const config::Node& node) {
  switch (node.kind) {
    case config::Node::Kind::null:
      return nullptr;
    case config::Node::Kind::scalar:
      return scalar(node);
    case config::Node::Kind::sequence: {
      Json list = Json::array();
      for (const config::Node& item : node.items) list.push_back(to_json(item));
      return list;
    }
    case config::Node::Kind::map:
      break;
  }
  Json map = Json::object();
  for (const config::Node::Entry& entry : node.entries) map[utf8(entry.key)] = to_json(entry.value);
  return map;
}

Context context(const backend::Backend& backend) {
  const BuildInfo build = build_info();
  Context block;
  block.date = utc_now();
  block.host_name = host_name();
  block.executable = executable_path();
  block.num_cpus = available_processors();
  block.threads = thread_count();
  for (const double average : load_average()) block.load_avg.push_back(average);
  block.library_version = build.version;
  block.library_build_type = build.build_type;
  block.compiler = build.compiler;
  block.git_commit = build.git_commit;
  block.git_dirty = build.git_dirty;
  block.device = backend.name;
  block.cpu.model = cpu_model();
  for (const auto& isa : backend::isa_names(backend.capabilities)) block.cpu.isa.emplace_back(isa);
  block.cpu.kernel_costs = kernel_costs(backend);
  block.gpu = gpus(backend);
  const backend::DeviceInfo& device = backend.device_info;
  block.versions = {std::string(backend::onednn_version()), device.runtime, device.cudnn, "", ""};
  if (backend.capabilities.ranks) {
    block.versions.mpi = backend.capabilities.ranks->transport().library;
  }
  sanitize(field_ref(block));
  return block;
}

ConfigBlock config_block(const config::RunSpec& spec, const std::vector<std::string>& overrides) {
  return {config::config_hash(spec), to_json(config::to_node(spec)), overrides};
}

std::vector<WarningBlock> warning_blocks(const std::vector<config::Warning>& warnings) {
  std::vector<WarningBlock> list;
  for (const config::Warning& w : warnings) list.push_back({w.code, to_string(w.where), w.message});
  return list;
}

StudyRun study_run(const RunInfo& run) {
  return {run.id, run.directory, run.command, run.started_at, utc_now()};
}

}  // namespace halfstep::report

#include "open_device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "backend/cost_model.h"
#include "backend/cuda/cuda.h"
#include "backend/device.h"
#include "config/warning_codes.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/process_claim.h"
#include "core/system.h"
#include "environment.h"
#include "report/context.h"
#include "report/run_files.h"
#include "warnings.h"

namespace halfstep::app {
namespace {

namespace cuda = backend::cuda;

/// The user's cache for measurements of this machine; "" when the environment defines none.
std::string cache_folder() {
  if (const auto cache = environment("XDG_CACHE_HOME")) return *cache + "/halfstep";
  if (const auto home = environment("HOME")) return *home + "/.cache/halfstep";
  return "";
}

std::shared_ptr<const backend::CostModel> read_cost_model(const std::string& path) {
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return nullptr;
  return std::make_shared<const backend::CostModel>(
      backend::CostModel::parse(read_file(path), path));
}

/// The threads that Slurm assigns to the task, where Slurm does not restrict its affinity.
std::optional<std::int64_t> slurm_threads() {
  const auto word = environment("SLURM_CPUS_PER_TASK");
  if (!word) return std::nullopt;
  const std::int64_t threads = environment_number("SLURM_CPUS_PER_TASK").value_or(0);
  if (threads < 1) {
    print_warnings(
        {config::warning(config::k_idle_variable,
                         {"SLURM_CPUS_PER_TASK", 0, 0, ""},
                         fmt::format("is '{}', which is not a number of threads", *word))});
    return std::nullopt;
  }
  return threads;
}

/// The thread count of the config; default: the processors this process may use, divided by the
/// ranks that may use the same ones, or those of its Slurm task if fewer.
int thread_count_of(const config::RunSpec& spec, const Ranks* ranks) {
  const std::int64_t sharing = ranks != nullptr ? ranks->sharing() : 1;
  const std::int64_t processors = std::max<std::int64_t>(1, available_processors() / sharing);
  const std::int64_t threads = spec.device.threads
                                   ? std::max<std::int64_t>(1, *spec.device.threads)
                                   : std::min(processors, slurm_threads().value_or(processors));
  if (threads > processors) {
    print_warnings(
        {config::warning(config::k_many_threads,
                         spec.where("device.threads"),
                         fmt::format("requests {} threads, but this process may use {} processors: "
                                     "more threads than processors wait for each other",
                                     threads,
                                     processors))});
  }
  return static_cast<int>(threads);
}

backend::Backend open_cpu(const config::RunSpec& spec,
                          const std::string& run_dir,
                          const Ranks* ranks) {
  const int threads = thread_count_of(spec, ranks);
  set_thread_count(threads);
  backend::Backend cpu = backend::cpu_backend(threads, max_isa());
  if (ranks != nullptr) cpu.capabilities.ranks = ranks->communicator();
  std::shared_ptr<const backend::CostModel>& costs = cpu.capabilities.costs;
  if (!run_dir.empty())
    costs = read_cost_model(fmt::format("{}/{}", run_dir, report::k_cost_model_file));
  if (!costs) costs = read_cost_model(cost_model_path(cpu.capabilities));
  return cpu;
}

/// Claims a GPU until the process ends, and warns where other processes use it too. An emulated
/// device has no uuid.
void claim_gpu(const config::RunSpec& spec, const std::string& uuid) {
  static std::map<std::string, ProcessClaim> claims;
  if (uuid.empty()) return;
  const auto [claim, first] = claims.try_emplace(uuid, uuid);
  const std::vector<pid_t> others = claim->second.others();
  if (!first || others.empty()) return;
  print_warnings({config::warning(config::k_shared_gpu,
                                  spec.where("device"),
                                  fmt::format("process{} {} use{} this GPU ({}) too",
                                              others.size() == 1 ? "" : "es",
                                              fmt::join(others, ", "),
                                              others.size() == 1 ? "s" : "",
                                              uuid))});
}

std::variant<backend::Backend, cuda::Unavailable> open_cuda(const config::RunSpec& spec,
                                                            const Ranks* ranks) {
  const cuda::PluginSearch search = plugin_search();
  if (auto unavailable = without_driver(search)) return *unavailable;
  cuda::DeviceOptions options;
  options.index = static_cast<int>(spec.device.index);
  options.local_rank = ranks != nullptr ? ranks->local_rank() : 0;
  options.tf32 = spec.precision.float32_math == config::Float32Math::tf32;
  options.deterministic = spec.training.deterministic;
  options.measure = spec.device.autotune == config::Autotune::measure;
  options.tuning_folder = spec.device.tuning_folder.value_or(cache_folder());
  std::variant<backend::Backend, cuda::Unavailable> opened = cuda::open(search, options);
  backend::Backend* backend = std::get_if<backend::Backend>(&opened);
  if (backend != nullptr && ranks != nullptr) {
    backend->capabilities.ranks = ranks->communicator();
  }
  if (backend != nullptr) claim_gpu(spec, backend->device_info.uuid);
  if (backend != nullptr && !spec.device.recorded) {
    backend->device = backend::eager_device(backend->device);
  }
  return opened;
}

}  // namespace

backend::Isa max_isa() {
  const auto word = environment("HALFSTEP_MAX_ISA");
  if (!word) return backend::Isa::amx;
  if (const auto isa = backend::isa_named(*word)) return *isa;
  throw UserError(ErrorKind::config,
                  {"HALFSTEP_MAX_ISA", 0, 0, ""},
                  fmt::format("unknown instruction set '{}'", *word),
                  "baseline, avx2, avx512, avx512_bf16 or amx");
}

cuda::PluginSearch plugin_search() {
  return {environment("HALFSTEP_CUDA_PLUGIN").value_or(""),
          cuda::plugin_folders(executable_path())};
}

std::optional<cuda::Unavailable> without_driver(const cuda::PluginSearch& search) {
  if (!search.given.empty() || cuda::driver_in_sight()) return std::nullopt;
  return cuda::Unavailable{"no NVIDIA driver",
                           "install the driver of the GPU, or use --device cpu"};
}

void print_device(const backend::Backend& device) {
  if (!device.note.empty()) log_info("device: {} ({})", device.name, device.note);
}

std::string cost_model_path(const backend::Capabilities& capabilities) {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  // Another version of the program or of oneDNN has other kernels, and so needs new measurements.
  const std::string key = Hasher()
                              .add(cpu_model())
                              .add(backend::onednn_version())
                              .add(report::build_info().version)
                              .hex()
                              .substr(0, 12);
  return fmt::format("{}/cpu-costs-{}-{}.txt", folder, name(capabilities.isa), key);
}

backend::Backend open_device(const config::RunSpec& spec,
                             const std::string& run_dir,
                             const Ranks* ranks) {
  if (spec.device.kind == config::DeviceKind::cpu) return open_cpu(spec, run_dir, ranks);
  auto opened = open_cuda(spec, ranks);
  if (auto* device = std::get_if<backend::Backend>(&opened)) {
    set_thread_count(thread_count_of(spec, ranks));
    return std::move(*device);
  }
  const cuda::Unavailable& unavailable = std::get<cuda::Unavailable>(opened);
  const bool fallback = spec.precision.fallback == config::Fallback::warn;
  if (spec.device.kind == config::DeviceKind::cuda && fallback) {
    print_warnings({config::warning(
        config::k_fallback_used,
        spec.where("device"),
        fmt::format("cuda cannot be used here ({}): the CPU is used", unavailable.reason))});
  } else if (spec.device.kind == config::DeviceKind::cuda) {
    throw UserError(ErrorKind::unavailable,
                    spec.where("device"),
                    "cuda cannot be used here: " + unavailable.reason,
                    unavailable.remedy);
  }
  backend::Backend cpu = open_cpu(spec, run_dir, ranks);
  cpu.note = unavailable.reason;
  return cpu;
}

}  // namespace halfstep::app

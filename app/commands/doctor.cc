#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>

#include "analysis/processor.h"
#include "backend/backend.h"
#include "backend/cuda/cuda.h"
#include "command.h"
#include "config/merge.h"
#include "config/reader.h"
#include "core/parallel.h"
#include "core/statistics.h"
#include "core/system.h"
#include "graph/ops/ops.h"
#include "open_device.h"
#include "plan/plan.h"
#include "ranks.h"
#include "report/context.h"
#include "report/machine_reports.h"

namespace halfstep::app {
namespace {

/// The support of a dtype on this machine, found by running a matmul.
struct Probe {
  DType dtype = DType::float32;
  bool ok = false;
  bool refused = false;  ///< the device has no kernel for the dtype; not an error
  std::string kernel;
  std::string caveat;
};

Probe probe(const backend::Backend& device, DType dtype) {
  using graph::Value;
  constexpr std::int64_t k_size = 64;
  Probe probe;
  probe.dtype = dtype;
  try {
    graph::Graph graph;
    graph::Builder b(graph, graph::op_table());
    const Shape shape{k_size, k_size};
    const Value x = b.cast(b.placeholder("x", DType::float32, shape), dtype);
    const Value y = b.add("MatMul", {x, x}, {}, "product");
    graph.fetches().emplace_back("y", b.cast(y, DType::float32));
    plan::Plan plan = plan::compile(graph, device);
    plan::State state(graph, 0, device.memory);
    plan::Arena arena(device.memory);
    arena.reserve(plan.arena_bytes());
    plan.bind(state, arena);
    std::vector<float> values(k_size * k_size, 0.5F);
    plan.write("x", values.data());
    plan.run();
    // The sum of 64 terms 1/2 * 1/2 is exact in every dtype.
    plan.read("y", values.data());
    probe.ok = std::ranges::all_of(values, [](float out) { return out == 0.25F * k_size; });
    for (const plan::KernelChoice& choice : plan.kernels()) {
      const std::string& op = plan.graph().node(choice.node).op;
      if (op == "MatMul" || op == "PackedMatMul") probe.kernel = choice.kernel;
    }
  } catch (const UserError& error) {
    probe.refused = error.kind() == ErrorKind::unavailable;
    probe.caveat = error.what();
  } catch (const std::exception& error) {
    probe.caveat = error.what();
  }
  return probe;
}

std::string caveat(const Probe& probe, const backend::Backend& device) {
  if (!probe.caveat.empty() || device.device) return probe.caveat;
  return std::string(analysis::half_caveat(name(device.capabilities.isa), probe.dtype));
}

/// The results, for the terminal and for the report.
struct Findings {
  bool all_ok = true;
  std::string page;
  std::vector<report::DtypeProbe> probes;

  template <class... Args>
  void append(fmt::format_string<Args...> text, Args&&... args) {
    page += fmt::format(text, std::forward<Args>(args)...);
  }
};

void try_dtypes(const backend::Backend& device, Findings& found) {
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const Probe result = probe(device, dtype);
    const std::string note = caveat(result, device);
    found.all_ok = found.all_ok && (result.ok || result.refused);
    found.append("      {:<9} {:<6} {}{}\n",
                 name(dtype),
                 result.ok        ? "ok"
                 : result.refused ? "none"
                                  : "FAILED",
                 result.kernel,
                 note.empty() ? "" : "; " + note);
    found.probes.push_back({device.name, std::string(name(dtype)), result.ok, result.kernel, note});
  }
}

/// The median time of an all-reduce of `count` float32 values, in seconds.
double all_reduce_seconds(comm::Communicator& ranks, std::int64_t count, int repeats) {
  using Clock = std::chrono::steady_clock;
  constexpr int k_warm_up = 2;
  const std::int64_t padded = comm::padded_count(count, ranks.size());
  std::vector<float> values(static_cast<std::size_t>(padded));
  std::byte* buffer = reinterpret_cast<std::byte*>(values.data());
  const auto sum = ranks.collective(count, DType::float32, comm::CollectiveKind::all_reduce);
  std::vector<double> seconds;
  for (int i = -k_warm_up; i < repeats; ++i) {
    const Clock::time_point begin = Clock::now();
    sum->start(buffer);
    ranks.wait(buffer);
    if (i >= 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return median(seconds);
}

/// The ranks of the launch, all of which call it; nothing where this process was started alone.
std::optional<report::RanksProbe> probe_ranks(const Ranks& all, const report::RankGroup& local) {
  if (all.alone()) return std::nullopt;
  constexpr std::int64_t k_large = std::int64_t{4} << 20;
  comm::Communicator& ranks = *all.communicator();
  report::RanksProbe found;
  found.launcher = launch_of_process().launcher;
  found.thread_level = ranks.transport().threads;
  found.count = ranks.size();
  for (const std::string& text : ranks.gather(to_json(local).dump())) {
    report::RankGroup group;
    std::vector<Violation> violations;
    read_json(Json::parse(text), field_ref(group), violations, {});
    require(violations.empty(), "a rank sent {}", text);
    const auto same = std::ranges::find_if(found.groups, [&](report::RankGroup known) {
      known.ranks = 0;
      return known == group;
    });
    if (same == found.groups.end()) {
      found.groups.push_back(group);
      found.groups.back().ranks = 1;
    } else {
      ++same->ranks;
    }
  }
  found.small_sum_seconds = all_reduce_seconds(ranks, 1, 200);
  found.large_sum_seconds = all_reduce_seconds(ranks, k_large, 10);
  const std::int64_t sent =
      comm::sent_bytes(comm::CollectiveKind::all_reduce, 4 * k_large, ranks.size());
  found.sent_bytes_per_second = static_cast<double>(sent) / found.large_sum_seconds;
  return found;
}

void print_ranks(const report::RanksProbe& ranks, Findings& found) {
  found.append(
      "ranks {} by {}, thread level {}\n", ranks.count, ranks.launcher, ranks.thread_level);
  for (const report::RankGroup& group : ranks.groups) {
    found.append("      {}: {} rank{} of {} thread{}, {}, {}\n",
                 group.host,
                 group.ranks,
                 group.ranks == 1 ? "" : "s",
                 group.threads,
                 group.threads == 1 ? "" : "s",
                 group.cpu,
                 group.isa);
    if (group.isa == ranks.groups.front().isa) continue;
    found.all_ok = false;
    found.append(
        "      {} and {} do not train together; HALFSTEP_MAX_ISA limits all ranks to one set\n",
        group.isa,
        ranks.groups.front().isa);
  }
  found.append(
      "      an all-reduce of 4 bytes takes {:.1f} us, of 16 MiB {:.1f} ms: {:.2f} GB/s sent by "
      "each\n",
      1e6 * ranks.small_sum_seconds,
      1e3 * ranks.large_sum_seconds,
      1e-9 * ranks.sent_bytes_per_second);
}

namespace cuda = backend::cuda;

/// Opens the plugin even without a driver, to report the versions of its libraries.
cuda::Detection look(const cuda::PluginSearch& search) {
  cuda::Detection found = cuda::detect(search);
  const auto unavailable = without_driver(search);
  if (unavailable && found.plugin.empty()) found.unavailable = unavailable;
  return found;
}

/// From compute capability 8.0 on, float32 matmuls may use TensorFloat-32.
constexpr int k_tf32_capability = 80;

void print_cuda(const cuda::Detection& cuda, Findings& found) {
  const auto or_none = [](const std::string& version) {
    return version.empty() ? "none" : version;
  };
  if (cuda.unavailable) {
    const std::string& remedy = cuda.unavailable->remedy;
    found.append(
        "cuda  none: {}{}\n", cuda.unavailable->reason, remedy.empty() ? "" : "; " + remedy);
  } else {
    found.append("cuda  {} ({})\n", cuda.plugin, cuda.flavour);
  }
  if (!cuda.plugin.empty()) {
    found.append("      driver {}  runtime {}  cuBLAS {}  cuDNN {}  NCCL {}\n",
                 or_none(cuda.driver),
                 or_none(cuda.runtime),
                 or_none(cuda.cublas),
                 or_none(cuda.cudnn),
                 cuda.nccl.empty() ? "not found" : cuda.nccl);
  }
  for (std::size_t i = 0; i < cuda.devices.size(); ++i) {
    const cuda::GpuInfo& gpu = cuda.devices[i];
    found.append(
        "      cuda:{} {}, compute capability {}.{}, {:.1f} GiB, {} multiprocessors, TF32 {}\n",
        i,
        gpu.name,
        gpu.compute_capability / 10,
        gpu.compute_capability % 10,
        static_cast<double>(gpu.memory_bytes) / (1 << 30),
        gpu.multiprocessors,
        gpu.compute_capability >= k_tf32_capability ? "yes" : "no");
  }
}

report::CudaBlock cuda_block(const cuda::Detection& cuda) {
  report::CudaBlock block{cuda.unavailable ? cuda.unavailable->reason : "",
                          cuda.unavailable ? cuda.unavailable->remedy : "",
                          cuda.plugin,
                          cuda.flavour,
                          cuda.driver,
                          cuda.runtime,
                          cuda.cublas,
                          cuda.cudnn,
                          cuda.nccl,
                          {}};
  for (const cuda::GpuInfo& gpu : cuda.devices) {
    block.devices.push_back(
        {gpu.name,
         fmt::format("{}.{}", gpu.compute_capability / 10, gpu.compute_capability % 10),
         gpu.memory_bytes,
         gpu.multiprocessors,
         gpu.compute_capability >= k_tf32_capability});
  }
  return block;
}

/// The index of the GPU that --device requests; nothing without it.
std::optional<std::size_t> wanted_gpu(const std::string& device) {
  if (device.empty()) return std::nullopt;
  const Where where{"--device", 0, 0, ""};
  config::Node node = config::Node::scalar(device, where);
  config::expand_shorthand(node, "device");
  config::DeviceSpec wanted;
  Diagnostics diagnostics;
  config::read(node, wanted, diagnostics, {});
  diagnostics.throw_if_any(ErrorKind::config);
  if (wanted.kind != config::DeviceKind::cuda) {
    throw UserError(ErrorKind::config,
                    where,
                    fmt::format("'{}' is not a GPU", device),
                    "cuda, or cuda:1 for the second one; the CPU is always tried");
  }
  return static_cast<std::size_t>(wanted.index);
}

/// `device`: the GPU that must be usable; "": whatever there is.
int doctor(bool json, const std::string& device) {
  const std::optional<std::size_t> gpu = wanted_gpu(device);
  const Ranks ranks;
  const int threads = std::max(1, available_processors() / ranks.sharing());
  set_thread_count(threads);
  const backend::Backend cpu = backend::cpu_backend(threads, max_isa());
  const std::optional<report::RanksProbe> together = probe_ranks(
      ranks, {host_name(), cpu_model(), std::string(name(cpu.capabilities.isa)), threads, 0});
  ranks.close();
  if (!ranks.speaks()) return 0;
  Findings found;
  const std::vector<std::string> sets = backend::isa_names(cpu.capabilities);
  found.append(
      "cpu   {}, {} threads, {}\n",
      cpu_model(),
      threads,
      sets.empty() ? name(backend::Isa::baseline) : fmt::format("{}", fmt::join(sets, " ")));
  if (const std::string_view note = backend::disabled_isa_reason(); !note.empty()) {
    found.append("      {}\n", note);
  }
  try_dtypes(cpu, found);

  const cuda::PluginSearch search = plugin_search();
  const cuda::Detection gpus = look(search);
  print_cuda(gpus, found);
  for (std::size_t i = 0; i < gpus.devices.size(); ++i) {
    cuda::DeviceOptions options;
    options.index = static_cast<int>(i);
    const auto opened = cuda::open(search, options);
    if (const auto* backend = std::get_if<backend::Backend>(&opened)) {
      try_dtypes(*backend, found);
    } else if (gpu == i) {
      found.all_ok = false;
      found.append(
          "      cuda:{} cannot be used: {}\n", i, std::get<cuda::Unavailable>(opened).reason);
    }
  }
  if (gpu && *gpu >= gpus.devices.size()) {
    found.all_ok = false;
    found.append("      cuda:{}, which --device requests, does not exist\n", *gpu);
  }

  const comm::MpiLibrary mpi = comm::find_mpi(mpi_options());
  if (mpi.problem.empty()) {
    found.append("mpi   {} ({})\n", mpi.file, mpi.version);
  } else {
    found.append("mpi   none: {}; openmpi-bin has one, for runs of several ranks\n", mpi.problem);
  }

  if (together) print_ranks(*together, found);

  const std::uint64_t memory = available_memory_bytes();
  const backend::OneDnnThreads onednn = backend::onednn_threads();
  found.append("libs  oneDNN {} on {}{} ({})\nmemory {:.1f} GiB available\n",
               backend::onednn_version(),
               onednn.runtime,
               onednn.count ? fmt::format(", threads: {}", *onednn.count) : "",
               onednn.reason,
               static_cast<double>(memory) / (1 << 30));
  if (json) {
    const report::DoctorReport report{
        report::context(cpu),
        memory,
        found.probes,
        {backend::onednn_version(), onednn.runtime, onednn.count, onednn.reason},
        cuda_block(gpus),
        {mpi.file, mpi.interface, mpi.version, mpi.problem, together}};
    fmt::print("{}", report::dump(to_json(report)));
  } else {
    fmt::print("{}", found.page);
  }
  return found.all_ok ? 0 : static_cast<int>(ErrorKind::unavailable);
}

std::function<int()> declare_doctor(CLI::App& command) {
  const auto json = std::make_shared<bool>(false);
  const auto device = std::make_shared<std::string>();
  command.add_flag("--json", *json, "print JSON");
  command.add_option(
      "--device", *device, "cuda or cuda:N: exit with status 6 unless that GPU can be used");
  return [json, device] { return doctor(*json, *device); };
}

}  // namespace

extern const Command k_doctor{
    "doctor",
    "run a matmul in each dtype and report the capabilities of this machine",
    declare_doctor};

}  // namespace halfstep::app

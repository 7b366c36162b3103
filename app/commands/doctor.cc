#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <memory>

#include "backend/backend.h"
#include "command.h"
#include "core/parallel.h"
#include "core/system.h"
#include "graph/ops/ops.h"
#include "plan/plan.h"
#include "report/context.h"
#include "run_options.h"

namespace halfstep::app {
namespace {

/// What a dtype does on this machine, found by running a matrix product.
struct Probe {
  DType dtype = DType::float32;
  bool ok = false;
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
    const plan::State state(graph, 0);
    plan::Arena arena;
    arena.reserve(plan.arena_bytes());
    plan.bind(state, arena);
    const TensorView in = plan.input("x");
    for (std::int64_t i = 0; i < in.elements(); ++i) in.as<float>()[i] = 0.5F;
    plan.run();
    // 64 products of 1/2 * 1/2: exact in every dtype.
    const TensorView out = plan.fetch("y");
    probe.ok = true;
    for (std::int64_t i = 0; i < out.elements(); ++i) {
      probe.ok = probe.ok && out.as<float>()[i] == 0.25F * k_size;
    }
    for (const plan::KernelChoice& choice : plan.kernels()) {
      const std::string& op = plan.graph().node(choice.node).op;
      if (op == "MatMul" || op == "PackedMatMul") probe.kernel = choice.kernel;
    }
  } catch (const std::exception& error) {
    probe.caveat = error.what();
  }
  return probe;
}

std::string caveat(const Probe& probe, backend::Isa isa) {
  if (!probe.caveat.empty()) return probe.caveat;
  if (probe.dtype == DType::float16) {
    return "16-bit storage, float32 arithmetic: saves memory, not time";
  }
  if (probe.dtype == DType::bfloat16 && isa < backend::Isa::avx512_bf16) {
    return "no bfloat16 instructions here: 16-bit storage, float32 arithmetic";
  }
  return "";
}

int doctor(bool json) {
  const int threads = available_processors();
  set_thread_count(threads);
  const backend::Backend device = backend::cpu_backend(threads, most_isa());
  report::Json probes = report::Json::array();
  bool all_ok = true;
  if (!json) {
    fmt::print("cpu   {}, {} threads, {}\n",
               cpu_model(),
               threads,
               fmt::join(backend::isa_names(device.capabilities), " "));
  }
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    const Probe result = probe(device, dtype);
    const std::string note = caveat(result, device.capabilities.isa);
    all_ok = all_ok && result.ok;
    if (!json) {
      fmt::print("      {:<9} {:<6} {}{}\n",
                 name(dtype),
                 result.ok ? "ok" : "FAILED",
                 result.kernel,
                 note.empty() ? "" : "; " + note);
    }
    probes.push_back(
        {{"device", "cpu"},
         {"dtype", name(dtype)},
         {"ok", result.ok},
         {"kernel", result.kernel},
         {"caveat", note.empty() ? report::Json(nullptr) : report::Json(report::utf8(note))}});
  }
  const double memory = static_cast<double>(available_memory_bytes()) / (1 << 30);
  if (json) {
    const report::Json report{{"schema_version", 1},
                              {"kind", "doctor"},
                              {"context", report::context(device)},
                              {"available_memory_bytes", available_memory_bytes()},
                              {"probes", std::move(probes)}};
    fmt::print("{}", report::dump(report));
  } else {
    fmt::print(
        "cuda  not in this build: no CUDA backend\nlibs  oneDNN {}\nmemory {:.1f} GiB available\n",
        backend::onednn_version(),
        memory);
  }
  return all_ok ? 0 : static_cast<int>(ErrorKind::unavailable);
}

std::function<int()> declare_doctor(CLI::App& command) {
  const auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "print JSON");
  return [json] { return doctor(*json); };
}

}  // namespace

const Command k_doctor{
    "doctor", "run a product in each dtype and say what this machine can do", declare_doctor};

}  // namespace halfstep::app

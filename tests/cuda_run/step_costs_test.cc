// The launches and the memory traffic of a training step of each shipped config on a GPU, compared
// with step_costs.csv. HALFSTEP_WRITE_STEP_COSTS=1 writes the table anew.
//
// Graph nodes: launches of the captured graph, counted over the emulated device; a library's call
// counts as one. Bytes: each launch reads and writes each of its tensors once; a variable that it
// changes counts twice. Copies derived from variables are computed before the first step only.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <ostream>
#include <set>
#include <string>

#include "config/load.h"
#include "cuda_run/device.h"
#include "graph/op_handles.h"
#include "graph/ops/fused_update.h"
#include "nn/step_graph.h"
#include "plan/plan.h"
#include "support/paths.h"
#include "train/fixture.h"
#include "train/step_pipeline.h"

namespace halfstep::train {
namespace {

namespace ops = graph::ops;
using graph::Graph;
using graph::Node;

constexpr std::array k_step_policies{"float32", "mixed_bfloat16", "mixed_float16"};
constexpr std::string_view k_header =
    "config,policy,graph nodes,bytes,bytes of the update per parameter";

struct StepCost {
  std::size_t nodes = 0;
  std::int64_t bytes = 0;
  double update = 0;  ///< bytes per parameter from the weight gradients to the weights that the
                      ///< next step multiplies by
};

std::int64_t bytes_of(const graph::TensorType& type) {
  return type.shape.elements() * static_cast<std::int64_t>(size_bytes(type.dtype));
}

/// The bytes that a launch of the node reads and writes.
std::int64_t moved_bytes(const Graph& graph, const Node& node) {
  std::int64_t bytes = 0;
  for (const graph::TensorType& type : node.outputs) bytes += bytes_of(type);
  // A lookup reads as many rows as it writes.
  std::set<graph::Value> seen;
  if (node.op == "GatherV2") {
    bytes += bytes_of(node.outputs[0]);
    seen.insert(node.inputs[0]);
  }
  for (const graph::Value& input : node.inputs) {
    if (!seen.insert(input).second) continue;
    const bool variable = graph.type(input).dtype == DType::resource;
    const std::int64_t once =
        bytes_of(variable ? ops::variable_type(graph.node(input.node)) : graph.type(input));
    bytes += variable && node.op != "AssignVariableOp" ? 2 * once : once;
  }
  return bytes;
}

bool is_of_update(const Graph& graph, const Node& node) {
  using graph::Phase;
  const Phase phase = node.origin.phase;
  if (phase == Phase::unscale || phase == Phase::clip || phase == Phase::update) return true;
  return node.is(ops::k_cast) && graph.node(node.inputs[0].node).is(ops::k_read_variable_op);
}

std::int64_t parameters(const Graph& graph) {
  std::int64_t count = 0;
  for (const graph::Variable& variable : graph.variables()) {
    if (variable.role == graph::Role::weight && variable.trainable) {
      count += variable.type.shape.elements();
    }
  }
  return count;
}

/// The emulated device for plans that are captured and never run: each launch gets addresses of
/// memory that is not there, so that a step of any size can be counted.
class CapturingDevice final : public backend::Device {
 public:
  backend::Prepared prepare(const backend::Kernel& row, const backend::NodeView& node) override {
    auto inner = std::make_shared<backend::Prepared>(emulated().device->prepare(row, node));
    return backend::launch([inner](const backend::Args& args) {
      std::vector<TensorView> in(args.in.begin(), args.in.end());
      std::vector<TensorView> out(args.out.begin(), args.out.end());
      auto* address = reinterpret_cast<std::byte*>(std::uintptr_t{1} << 20U);
      for (TensorView& view : in) view.data = address;
      for (TensorView& view : out) view.data = address;
      inner->launch->run({in, out, address});
    });
  }
  void synchronize() override {}
  std::unique_ptr<backend::CapturedGraph> capture(const std::function<void()>& enqueue) override {
    return emulated().device->capture(enqueue);
  }
};

/// The launches around the plan of a step that goes ahead of the host, by whether the step can be
/// skipped: the ordinal, the batch, the log and the snapshot.
std::map<bool, std::size_t> nodes_around() {
  std::map<bool, std::size_t> around;
  for (const char* precision : {"{policy: float32}", "{policy: float32, on_nonfinite: skip}"}) {
    TinyRun tiny;
    tiny.precision = precision;
    Run run(tiny.spec(), {}, digits(), emulated());
    DeviceBatches batches(
        emulated(), run.session().train_rows(), {.batch_size = 24, .seed = 1, .shuffle = true});
    plan::Plan& plan = run.session().plan(nn::Purpose::train, 24);
    const auto pipeline = StepPipeline::make(run.session(), batches);
    REQUIRE(pipeline != nullptr);
    pipeline->begin(0);
    const auto captured = emulated().device->capture([&] { plan.enqueue(); });
    around[plan.graph().has_fetch("ok")] = pipeline->nodes() - captured->nodes();
  }
  return around;
}

StepCost cost_of(const std::filesystem::path& file, const std::string& policy) {
  static const std::map<bool, std::size_t> k_around = nodes_around();
  Diagnostics diagnostics;
  config::RunSpec spec =
      config::parse_run_spec(config::load_file(file.string(), diagnostics), diagnostics);
  spec.precision.policy = policy;
  const nn::StepSpec step = nn::read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();
  // Data sets with a name are of images.
  const DType stored = spec.data.name                                 ? DType::uint8
                       : spec.data.format == config::DataFormat::text ? DType::int32
                                                                      : DType::float32;
  nn::DataShape data{step.model.inputs.front().shape, stored, {}, DType::int32};
  const Shape& output = step.output.shape;
  data.label = Shape(output.dims().first(output.rank() - 1));  // a class at each position
  const Graph graph =
      plan::build_step(step, data, spec.training.batch_size, nn::Purpose::train, spec).graph;
  backend::Backend backend = emulated();
  backend.device = std::make_shared<CapturingDevice>();
  plan::Plan plan = plan::compile(graph, backend);

  StepCost cost;
  cost.nodes = backend.device->capture([&] { plan.enqueue(); })->nodes();
  cost.nodes += k_around.at(plan.graph().has_fetch("ok"));
  std::int64_t update = 0;
  for (const plan::KernelChoice& choice : plan.kernels()) {
    const Node& node = plan.graph().node(choice.node);
    if (choice.kernel.empty() || node.is(ops::k_cast_variable)) continue;
    const std::int64_t bytes = moved_bytes(plan.graph(), node);
    cost.bytes += bytes;
    if (is_of_update(plan.graph(), node)) update += bytes;
    if (std::getenv("HALFSTEP_PRINT_STEP") != nullptr) {
      MESSAGE(choice.kernel << " " << node.op << " " << node.name << " " << bytes);
    }
  }
  cost.update = static_cast<double>(update) / static_cast<double>(parameters(graph));
  return cost;
}

std::string row_of(const std::string& config, const std::string& policy, const StepCost& cost) {
  return fmt::format("{},{},{},{},{:.1f}", config, policy, cost.nodes, cost.bytes, cost.update);
}

/// The lines of the table by config and policy.
std::map<std::string, std::string> rows_of(const std::filesystem::path& path) {
  std::map<std::string, std::string> rows;
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t policy = line.find(',', line.find(',') + 1);
    rows[line.substr(0, policy)] = line;
  }
  return rows;
}

}  // namespace

TEST_CASE("device: a step of a shipped config launches and moves no more than before") {
  const std::filesystem::path table = test::source_dir() / "tests/cuda_run/step_costs.csv";
  std::set<std::filesystem::path> configs;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / "configs")) {
    if (entry.path().extension() == ".yaml") configs.insert(entry.path());
  }
  std::vector<std::string> rows;
  for (const std::filesystem::path& config : configs) {
    for (const char* policy : k_step_policies) {
      const std::string name = config.stem().string();
      try {
        rows.push_back(row_of(name, policy, cost_of(config, policy)));
      } catch (const UserError& error) {
        // A layer without a kernel on a GPU.
        if (error.kind() != ErrorKind::unavailable) throw;
        rows.push_back(fmt::format("{},{},refused,,", name, policy));
      }
    }
  }
  if (std::getenv("HALFSTEP_WRITE_STEP_COSTS") != nullptr) {
    std::ofstream file(table);
    file << k_header << '\n';
    for (const std::string& row : rows) file << row << '\n';
    return;
  }
  std::map<std::string, std::string> committed = rows_of(table);
  CHECK(committed.size() == rows.size() + 1);
  for (const std::string& row : rows) {
    const std::string key = row.substr(0, row.find(',', row.find(',') + 1));
    const std::string& old = committed[key];
    CHECK_MESSAGE(row == old,
                  key << ": " << old << " is now " << row
                      << "; a step must not launch or move more, and fewer are recorded by "
                         "HALFSTEP_WRITE_STEP_COSTS=1 test_cuda_run -tc='device: a step of a "
                         "shipped*'");
  }
}

}  // namespace halfstep::train

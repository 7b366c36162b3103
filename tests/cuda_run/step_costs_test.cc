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

#include "analysis/gpu_prediction.h"
#include "analysis/work.h"
#include "backend/cuda/kernel_table.h"
#include "config/load.h"
#include "cuda_run/device.h"
#include "graph/op_handles.h"
#include "nn/step_graph.h"
#include "plan/pipeline.h"
#include "plan/plan.h"
#include "support/op_cases.h"
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
  std::unique_ptr<backend::Event> make_event() override { return emulated().device->make_event(); }
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
        emulated(), run.session().train_split(), {.batch_size = 24, .seed = 1, .shuffle = true});
    plan::Plan& plan = run.session().plan(nn::Purpose::train, 24);
    const auto pipeline = StepPipeline::make(run.session(), batches);
    REQUIRE(pipeline != nullptr);
    pipeline->begin(0);
    // The gather also scales the batch.
    const auto captured = emulated().device->capture([&] { plan.enqueue(true); });
    REQUIRE(plan.scaled("images").has_value());
    around[plan.graph().has_fetch("ok")] = pipeline->nodes() - captured->nodes();
  }
  return around;
}

/// The training step of a config before lowering; `batch`: 0 for the config's own.
Graph step_of(const std::filesystem::path& file,
              const std::string& policy,
              std::int64_t batch = 0) {
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
  const Shape& output = step.outputs.at(0).form.shape;
  data.label = Shape(output.dims().first(output.rank() - 1));  // a class at each position
  if (batch == 0) batch = spec.training.batch_size;
  return plan::build_step(step, data, batch, nn::Purpose::train, spec).graph;
}

StepCost cost_of(const std::filesystem::path& file, const std::string& policy) {
  static const std::map<bool, std::size_t> k_around = nodes_around();
  const Graph graph = step_of(file, policy);
  backend::Backend backend = emulated();
  backend.device = std::make_shared<CapturingDevice>();
  plan::Plan plan = plan::compile(graph, backend);

  StepCost cost;
  const auto scaled = plan::scaled_input(plan.graph(), "images");
  cost.nodes = backend.device->capture([&] { plan.enqueue(scaled.has_value()); })->nodes();
  cost.nodes += k_around.at(plan.graph().has_fetch("ok"));
  std::int64_t update = 0;
  for (const plan::KernelChoice& choice : plan.kernels()) {
    const Node& node = plan.graph().node(choice.node);
    if (choice.kernel.empty() || node.is(ops::k_cast_variable)) continue;
    if (scaled && scaled->node == choice.node) {
      // The gather writes the result.
      cost.bytes += node.outputs[0].shape.elements() *
                    static_cast<std::int64_t>(size_bytes(node.outputs[0].dtype));
      continue;
    }
    const auto bytes = static_cast<std::int64_t>(analysis::node_work(plan.graph(), node).bytes);
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

/// The predicted time of a step on an H100, in milliseconds.
analysis::StepPrediction predicted(const std::string& config,
                                   const char* policy,
                                   std::int64_t batch) {
  const backend::Backend gpu = backend::cuda::absent_gpu(90);
  const std::filesystem::path file = test::source_dir() / "configs" / (config + ".yaml");
  const Graph lowered = plan::lower(step_of(file, policy, batch), gpu).graph;
  return analysis::predict_step(lowered, analysis::kernels_of(lowered, gpu), 90, false).value();
}

}  // namespace

TEST_CASE("device: the predicted step of the guide's model takes at most 1.50 ms on an H100") {
  const analysis::StepPrediction half = predicted("guide_4096", "mixed_float16", 8192);
  CHECK(half.ms <= 1.50);
  // The matmuls alone, at the rate of a large one; the ten logits take up 16 columns.
  double flops = 0, sum = 0;
  for (const analysis::PredictedLaunch& launch : half.launches) {
    flops += launch.flops;
    sum += launch.ms;
  }
  CHECK(flops == doctest::Approx(933.1e9).epsilon(1e-3));
  CHECK(half.ms >= flops / 798e12 * 1e3);
  CHECK(half.ms == doctest::Approx(sum));
  const analysis::StepPrediction single = predicted("guide_4096", "float32", 8192);
  CHECK(single.ms / half.ms > 9);
  // Launches decide about a small model: its nodes at 3 us each.
  CHECK(predicted("guide_64", "mixed_float16", 128).ms < 0.060);
}

TEST_CASE("device: attention is predicted to multiply in float32 without tensor cores") {
  int found = 0;
  for (const analysis::PredictedLaunch& launch :
       predicted("char_lm", "mixed_float16", 160).launches) {
    if (!launch.kernel.starts_with("cuda/attention")) continue;
    CHECK(launch.ms >= 1.999e-3 + launch.flops / analysis::gpu_rates(90)->float32_flops * 1e3);
    ++found;
  }
  CHECK(found == 6);
}

TEST_CASE("device: an op is captured as the nodes that its prediction counts") {
  CapturingDevice device;
  std::set<std::string_view> checked;
  for (const testing::OpCase& c : testing::all_kernel_cases()) {
    const std::vector<DType> dtypes = testing::dtypes_of(c);
    const testing::BuiltCase built = testing::build(c, dtypes.front());
    const backend::NodeView node{built.graph, built.graph.node(built.node)};
    const backend::Kernel* kernel = backend::choose(emulated(), node).kernel;
    std::vector<TensorView> in, out;
    bool empty = false;
    const auto view = [&](const graph::TensorType& type) {
      empty = empty || type.shape.elements() == 0;
      return TensorView{type.dtype, type.shape, nullptr};
    };
    for (std::size_t i = 0; i < node.inputs(); ++i) in.push_back(view(node.input(i)));
    for (std::size_t i = 0; i < node.outputs(); ++i) out.push_back(view(node.output(i)));
    // Nothing is launched for a tensor without elements. Windows that overlap, matrices that are
    // not evenly spaced differ, as graph_nodes() says.
    if (kernel == nullptr || node.node.def->aliases || empty) continue;
    if (kernel->name == "cuda/max_pool_grad" || kernel->name == "cublaslt/batch_matmul") continue;
    CAPTURE(c.name);
    CAPTURE(kernel->name);
    const backend::Prepared prepared = device.prepare(*kernel, node);
    const auto captured = device.capture([&] { prepared.launch->run({in, out, nullptr}); });
    CHECK(static_cast<std::int64_t>(captured->nodes()) ==
          analysis::graph_nodes(built.graph, node.node, kernel->name));
    checked.insert(kernel->name);
  }
  CHECK(checked.size() > 40);
  // Forward and backward, 28 steps of 3.9 us each; by a library two nodes each and the gradient of
  // the initial state.
  const double one_launch = predicted("lstm_rows", "mixed_float16", 128).ms;
  CHECK(one_launch > 56 * 3.9e-3);
  CHECK(one_launch < 0.3);
  const double by_library = predicted("lstm_rows", "mixed_float16", 512).ms;
  CHECK(by_library > (56 + 57) * 3e-3);
  CHECK(by_library < 0.6);
}

TEST_CASE("device: the large bodies of elementwise ops in shipped CNNs have compiled kernels") {
  constexpr std::int64_t k_elements = 1 << 16;
  int bodies = 0;
  for (const char* config : {"mnist_cnn", "fashion_cnn", "residual"}) {
    const std::filesystem::path file =
        test::source_dir() / "configs" / (std::string(config) + ".yaml");
    for (const char* policy : k_step_policies) {
      CAPTURE(config);
      CAPTURE(policy);
      const plan::Plan plan = plan::compile(step_of(file, policy), emulated());
      const auto scaled = plan::scaled_input(plan.graph(), "images");
      for (const plan::KernelChoice& choice : plan.kernels()) {
        const Node& node = plan.graph().node(choice.node);
        const bool large = node.is(graph::OpHandle{"FusedElementwise"}) &&
                           (!scaled || scaled->node != choice.node) &&
                           node.outputs[0].shape.elements() >= k_elements;
        if (!large) continue;
        ++bodies;
        CAPTURE(to_string(node.attrs.get<graph::ElementwiseBody>("body")));
        REQUIRE(choice.algorithm.has_value());
        CHECK(choice.algorithm->text == "compiled body");
      }
    }
  }
  CHECK(bodies >= 12);
}

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

// The speed of the CPU kernels relative to the machine's limits, printed as ratios:
//   bench_kernels matmul            matmul kernels against the best raw oneDNN matmul
//   bench_kernels maps              elementwise kernels against copying memory
//   bench_kernels updates           optimizers against copying the same number of bytes
//   bench_kernels step CONFIG [B]   a training step against the raw matmuls it needs
// Own and raw calls alternate; each number is the median of its samples.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "backend/backend.h"
#include "bench.h"
#include "config/merge.h"
#include "config/run_spec.h"
#include "core/parallel.h"
#include "data/dataset.h"
#include "graph/builder.h"
#include "graph/ops/ops.h"
#include "train/session.h"

namespace halfstep::bench {
namespace {

void bench_matmul(const backend::Backend& cpu) {
  constexpr Product k_products[] = {{8192, 784, 4096},
                                    {784, 8192, 4096, true},
                                    {1024, 4096, 4096},
                                    {1024, 4096, 4096, false, true},
                                    {4096, 1024, 4096, true},
                                    {8192, 784, 64},
                                    {784, 8192, 64, true},
                                    {8192, 64, 10},
                                    {64, 8192, 10, true},
                                    {8192, 10, 64, false, true},
                                    {128, 9216, 128}};
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const Product& p : k_products) {
      Node node(cpu,
                "MatMul",
                {{dtype, p.ta ? Shape{p.k, p.m} : Shape{p.m, p.k}},
                 {dtype, p.tb ? Shape{p.n, p.k} : Shape{p.k, p.n}}},
                {{"transpose_a", p.ta}, {"transpose_b", p.tb}});
      // float16 is held against float32, which it is computed in.
      const DType raw_dtype = dtype == DType::bfloat16 ? dtype : DType::float32;
      RawMatmul plain(p, raw_dtype, false), packed(p, raw_dtype, true);
      const std::function<void()> functions[] = {
          [&] { node.run(); }, [&] { plain.run(); }, [&] { packed.run(); }};
      const std::vector<double> t = medians(functions);
      fmt::print("{:9} {:5} x {:5} x {:5}{}{} {:9.3f} ms {:6.0f} GFLOP/s, best raw x {:.2f}  {}\n",
                 name(dtype),
                 p.m,
                 p.k,
                 p.n,
                 p.ta ? " ta" : "   ",
                 p.tb ? " tb" : "   ",
                 t[0] * 1e3,
                 p.flops() / t[0] * 1e-9,
                 t[0] / std::min(t[1], t[2]),
                 node.kernel());
    }
  }
}

/// Copies a float32 tensor on all threads.
class Copy {
 public:
  explicit Copy(const Shape& shape)
      : from_(random_tensor({DType::float32, shape})), to_(DType::float32, shape) {}

  void run() const {
    parallel_for(static_cast<std::int64_t>(from_.bytes()), 1 << 16, [&](auto begin, auto end) {
      std::memcpy(
          to_.as<char>() + begin, from_.as<char>() + begin, static_cast<std::size_t>(end - begin));
    });
  }
  /// Read and written.
  double bytes() const { return 2 * static_cast<double>(from_.bytes()); }
  const Tensor& from() const { return from_; }

 private:
  Tensor from_, to_;
};

void bench_maps(const backend::Backend& cpu) {
  const Shape shape{4096, 4096};
  const Copy copy(shape);
  struct Map {
    std::string_view op;
    std::vector<Shape> in;
    graph::Attrs attrs;
  };
  const Map maps[] = {{"Relu", {shape}, {}},
                      {"ReluGrad", {shape, shape}, {}},
                      {"AddV2", {shape, shape}, {}},
                      {"BiasAdd", {shape, {4096}}, {}},
                      {"Mul", {shape, {}}, {}},
                      {"Tanh", {shape}, {}},
                      {"Sigmoid", {shape}, {}},
                      {"Erf", {shape}, {}},
                      {"Exp", {shape}, {}},
                      {"BiasAddGrad", {shape}, {}},
                      {"Softmax", {shape}, {}},
                      {"Cast", {shape}, {{"DstT", DType::bfloat16}}}};
  for (DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const Map& map : maps) {
      if (map.op == "Cast" && dtype != DType::float32) continue;
      std::vector<graph::TensorType> in;
      for (const Shape& s : map.in) in.push_back({dtype, s});
      Node node(cpu, map.op, in, map.attrs);
      const std::function<void()> functions[] = {[&] { node.run(); }, [&] { copy.run(); }};
      const std::vector<double> t = medians(functions, 0.5);
      const double copy_rate = copy.bytes() / t[1];
      fmt::print("{:9} {:12} {:8.3f} ms {:6.1f} GB/s, copy x {:.2f}  {}\n",
                 name(dtype),
                 map.op,
                 t[0] * 1e3,
                 node.bytes() / t[0] * 1e-9,
                 copy_rate / (node.bytes() / t[0]),
                 node.kernel());
    }
  }
}

/// An optimizer's update of 20 M parameters against moving as many bytes by copying.
void bench_updates(const backend::Backend& cpu) {
  const Shape shape{20'000'000};
  const Copy copy(shape);
  for (const std::string_view op : {"ResourceApplyGradientDescent",
                                    "ResourceApplyKerasMomentum",
                                    "ResourceApplyKerasRMSProp",
                                    "ResourceApplyAdam",
                                    "ResourceApplyAdamW",
                                    "ResourceApplyAdagradV2"}) {
    graph::Graph graph;
    graph::Builder b(graph, graph::op_table());
    std::vector<graph::Value> inputs;
    double tensors = 1;  // the gradient is read, variables are read and written
    for (const graph::Port& port : graph::op_table().find(op)->inputs) {
      if (port.optional) continue;
      if (port.fixed == DType::resource) {
        graph::Variable variable;
        variable.name = port.name;
        variable.type.shape = shape;
        variable.initializer.a = 0.5;
        inputs.push_back(b.variable(std::move(variable)));
        tensors += 2;
      } else if (port.name == "grad" || port.name == "delta") {
        inputs.push_back(b.placeholder("gradient", DType::float32, shape));
      } else {
        inputs.push_back(b.scalar(DType::float32, 0x1p-10));
      }
    }
    b.add_node(op, inputs);
    plan::Plan plan = plan::compile(graph, cpu);
    plan::State state(graph, 1);
    plan::Arena arena;
    arena.reserve(plan.arena_bytes());
    plan.bind(state, arena);
    convert(copy.from().view(), plan.input("gradient"));
    const std::function<void()> functions[] = {[&] { plan.run(); }, [&] { copy.run(); }};
    const std::vector<double> t = medians(functions, 1);
    const double floor = t[1] * tensors * static_cast<double>(copy.from().bytes()) / copy.bytes();
    fmt::print("{:28} {:7.2f} ms, bytes at copy speed {:7.2f} ms, ratio {:.2f}\n",
               op,
               t[0] * 1e3,
               floor * 1e3,
               t[0] / floor);
  }
}

void bench_step(const backend::Backend& cpu, const std::string& config, std::string_view batch) {
  using config::Override;
  Diagnostics diagnostics;
  std::vector<Override> settings{{Override::Kind::set, "data.name", "synthetic_digits", "bench"},
                                 {Override::Kind::set, "precision.policy", "float32", "bench"}};
  if (!batch.empty()) {
    settings.push_back({Override::Kind::set, "training.batch_size", std::string(batch), "bench"});
  }
  const config::Node node = config::assemble(std::vector{config}, settings, diagnostics);
  const config::RunSpec spec = config::parse_run_spec(node, diagnostics);
  diagnostics.throw_if_any();
  data::DataOptions options;
  options.name = "synthetic_digits";
  const data::Dataset dataset = data::load_dataset(options);
  train::Session session(spec, dataset, cpu);
  plan::Plan& plan = session.plan(nn::Purpose::train, spec.training.batch_size);

  // Two ways to call oneDNN for each matmul; both alternate with the step.
  std::vector<std::unique_ptr<RawMatmul>> raw;
  std::vector<std::function<void()>> functions{[&] { plan.run(); }};
  for (int id = 0; id < plan.graph().size(); ++id) {
    const graph::Node& product = plan.graph().node(id);
    if (product.op != "MatMul") continue;
    const Shape& y = product.outputs[0].shape;
    const Shape& a = plan.graph().type(product.inputs[0]).shape;
    const bool ta = product.attrs.get<bool>("transpose_a");
    const Product p{y[0], a[ta ? 0 : 1], y[1], ta, product.attrs.get<bool>("transpose_b")};
    for (const bool any : {false, true}) {
      RawMatmul* call = raw.emplace_back(std::make_unique<RawMatmul>(p, DType::float32, any)).get();
      functions.emplace_back([call] { call->run(); });
    }
  }
  const std::vector<double> t = medians(functions, 3);
  const double own = t[0];
  double best = 0;
  for (std::size_t i = 1; i < t.size(); i += 2) best += std::min(t[i], t[i + 1]);
  fmt::print("{}: step {:.3f} ms, raw matmuls {:.3f} ms, ratio {:.3f}\n",
             config,
             own * 1e3,
             best * 1e3,
             own / best);
}

int run(std::span<char*> args) {
  const backend::Backend cpu = backend::cpu_backend(available_processors());
  fmt::print("{} threads, {}\n", cpu.capabilities.threads, backend::name(cpu.capabilities.isa));
  const std::string_view what = args.empty() ? "" : args[0];
  if (what == "matmul") {
    bench_matmul(cpu);
  } else if (what == "maps") {
    bench_maps(cpu);
  } else if (what == "updates") {
    bench_updates(cpu);
  } else if (what == "step" && args.size() > 1) {
    bench_step(cpu, args[1], args.size() > 2 ? args[2] : "");
  } else {
    fmt::print(stderr, "usage: bench_kernels matmul | maps | updates | step CONFIG [BATCH]\n");
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace halfstep::bench

int main(int argc, char** argv) {
  try {
    return halfstep::bench::run({argv + 1, static_cast<std::size_t>(argc - 1)});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

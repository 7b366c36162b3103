// How near the CPU kernels come to what the machine gives, printed as ratios:
//   bench_kernels matmul            kernel rows against the best raw oneDNN matmul
//   bench_kernels maps              elementwise kernels against copying memory
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

void bench_maps(const backend::Backend& cpu) {
  const Shape shape{4096, 4096};
  const Tensor from = random_tensor({DType::float32, shape});
  const Tensor to(DType::float32, shape);
  const std::function<void()> copy = [&] {
    parallel_for(static_cast<std::int64_t>(from.bytes()), 1 << 16, [&](auto begin, auto end) {
      std::memcpy(
          to.as<char>() + begin, from.as<char>() + begin, static_cast<std::size_t>(end - begin));
    });
  };
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
      const std::function<void()> functions[] = {[&] { node.run(); }, copy};
      const std::vector<double> t = medians(functions, 0.5);
      const double copy_rate = 2 * static_cast<double>(from.bytes()) / t[1];
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

  // Two ways to call oneDNN for each product; both in turns with the step.
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
  } else if (what == "step" && args.size() > 1) {
    bench_step(cpu, args[1], args.size() > 2 ? args[2] : "");
  } else {
    fmt::print(stderr, "usage: bench_kernels matmul | maps | step CONFIG [BATCH]\n");
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

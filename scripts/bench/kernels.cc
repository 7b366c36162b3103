// How near the CPU kernels come to what the machine gives, printed as ratios:
//   bench_kernels matmul            kernel rows against the best raw oneDNN matmul
//   bench_kernels maps              elementwise kernels against copying memory
//   bench_kernels step CONFIG [B]   a training step against the raw matmuls it needs
// Own and raw calls alternate; each number is the median of its samples.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <string_view>

#include "backend/backend.h"
#include "config/merge.h"
#include "config/run_spec.h"
#include "core/parallel.h"
#include "core/philox.h"
#include "data/dataset.h"
#include "graph/ops/ops.h"
#include "train/session.h"

namespace halfstep {
namespace {

/// Wall time; on one thread (taskset -c 0) processor time, which neighbours disturb less.
double seconds(const std::function<void()>& f) {
  const std::clock_t processor = std::clock();
  const auto start = std::chrono::steady_clock::now();
  f();
  if (thread_count() == 1) return static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Median seconds of each function, sampled in turns for about `budget` seconds.
std::vector<double> medians(std::span<const std::function<void()>> functions, double budget = 1) {
  std::vector<std::vector<double>> samples(functions.size());
  double spent = 0;
  for (const auto& f : functions) f();
  while (spent < budget || samples[0].size() < 5) {
    for (std::size_t i = 0; i < functions.size(); ++i) {
      samples[i].push_back(seconds(functions[i]));
      spent += samples[i].back();
    }
  }
  std::vector<double> result;
  for (auto& s : samples) {
    std::nth_element(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(s.size() / 2), s.end());
    result.push_back(s[s.size() / 2]);
  }
  return result;
}

/// Numbers in [-1, 1): zeros would run faster than real data.
Tensor random_tensor(const graph::TensorType& type) {
  Tensor wide(DType::float32, type.shape);
  RandomStream random(1, 2);
  for (float& x : wide.span<float>()) x = random.uniform() * 2 - 1;
  Tensor tensor(type.dtype, type.shape);
  convert(wide.view(), tensor.view());
  return tensor;
}

/// One node on the backend's first kernel, with memory of its own.
class Node {
 public:
  Node(const backend::Backend& backend,
       std::string_view op,
       const std::vector<graph::TensorType>& in,
       graph::Attrs attrs = {}) {
    graph::Builder b(graph_, graph::op_table());
    std::vector<graph::Value> values;
    for (const graph::TensorType& type : in) {
      values.push_back(b.placeholder("x", type.dtype, type.shape));
      tensors_.push_back(random_tensor(type));
      in_.push_back(tensors_.back().view());
    }
    const int id = b.add_node(op, values, std::move(attrs));
    const backend::NodeView node{graph_, graph_.node(id)};
    kernel_ = backend::choose(backend, node).kernel;
    prepared_ = kernel_->prepare(node, backend.capabilities);
    workspace_ = AlignedBuffer(prepared_.workspace_bytes);
    for (const graph::TensorType& type : graph_.node(id).outputs) {
      tensors_.emplace_back(type.dtype, type.shape);
      out_.push_back(tensors_.back().view());
    }
  }

  void run() { prepared_.launch->run({in_, out_, workspace_.data()}); }
  std::string_view kernel() const { return kernel_->name; }
  double bytes() const {
    double sum = 0;
    for (const auto& list : {in_, out_}) {
      for (const TensorView& view : list) sum += static_cast<double>(view.bytes());
    }
    return sum;
  }

 private:
  graph::Graph graph_;
  const backend::Kernel* kernel_ = nullptr;
  backend::Prepared prepared_;
  AlignedBuffer workspace_;
  std::vector<Tensor> tensors_;
  std::vector<TensorView> in_, out_;
};

struct Product {
  std::int64_t m, k, n;
  bool ta = false, tb = false;

  double flops() const {
    return 2 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  }
};

/// oneDNN's matmul on operands as they lie, or with b in a layout of its choice (reordered at every
/// call, as weights change).
class RawMatmul {
 public:
  RawMatmul(const Product& p, DType dtype, bool any)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using Memory = dnnl::memory;
    const auto type = dtype == DType::bfloat16 ? Memory::data_type::bf16 : Memory::data_type::f32;
    const auto desc = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
      return Memory::desc(
          {rows, columns}, type, transposed ? Memory::dims{1, rows} : Memory::dims{columns, 1});
    };
    const auto a = desc(p.m, p.k, p.ta), b = desc(p.k, p.n, p.tb), y = desc(p.m, p.n, false);
    const Memory::desc free({p.k, p.n}, type, Memory::format_tag::any);
    const dnnl::matmul::primitive_desc how(dnnl::matmul::desc(a, any ? free : b, y), engine_);
    matmul_ = dnnl::matmul(how);
    a_ = filled(a, dtype);
    b_ = filled(b, dtype);
    y_ = Memory(y, engine_);
    packed_ = how.weights_desc() == b ? b_ : Memory(how.weights_desc(), engine_);
  }

  void run() {
    if (packed_.get() != b_.get()) dnnl::reorder(b_, packed_).execute(stream_, b_, packed_);
    matmul_.execute(stream_, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, packed_}, {DNNL_ARG_DST, y_}});
    stream_.wait();
  }

 private:
  dnnl::memory filled(const dnnl::memory::desc& desc, DType dtype) const {
    dnnl::memory memory(desc, engine_);
    const auto elements = static_cast<std::int64_t>(desc.get_size() / size_bytes(dtype));
    const Tensor data = random_tensor({dtype, {elements}});
    std::memcpy(memory.get_data_handle(), data.view().data, data.bytes());
    return memory;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  dnnl::memory a_, b_, y_, packed_;
};

/// Seconds of the best raw call.
double best_raw(const Product& p, DType dtype, double budget) {
  double best = 1e9;
  for (const bool any : {false, true}) {
    RawMatmul raw(p, dtype, any);
    const std::function<void()> f = [&] { raw.run(); };
    best = std::min(best, medians({&f, 1}, budget)[0]);
  }
  return best;
}

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

  double raw = 0;
  for (int id = 0; id < plan.graph().size(); ++id) {
    const graph::Node& product = plan.graph().node(id);
    if (product.op != "MatMul") continue;
    const Shape& y = product.outputs[0].shape;
    const Shape& a = plan.graph().type(product.inputs[0]).shape;
    const bool ta = product.attrs.get<bool>("transpose_a");
    const Product p{y[0], a[ta ? 0 : 1], y[1], ta, product.attrs.get<bool>("transpose_b")};
    raw += best_raw(p, DType::float32, 1);
  }
  const std::function<void()> step = [&] { plan.run(); };
  const double own = medians({&step, 1}, 3)[0];
  fmt::print("{}: step {:.3f} ms, raw matmuls {:.3f} ms, ratio {:.3f}\n",
             config,
             own * 1e3,
             raw * 1e3,
             own / raw);
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
}  // namespace halfstep

int main(int argc, char** argv) {
  try {
    return halfstep::run({argv + 1, static_cast<std::size_t>(argc - 1)});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

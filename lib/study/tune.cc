#include "study/tune.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <ctime>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>

#include "backend/cpu/processor.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/philox.h"
#include "core/tensor.h"
#include "graph/builder.h"
#include "graph/ops/ops.h"
#include "graph/ops/packed.h"

namespace halfstep::study {
namespace {

using backend::Workload;
using graph::Attrs;
using graph::Value;
using Ints = std::vector<std::int64_t>;

/// Processor time of the calling thread: less affected by other processes than wall time.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double steady_seconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

/// Values in [-1, 1): on zeros the units need less power and run faster.
Tensor random_tensor(const graph::TensorType& type) {
  Tensor tensor(type.dtype, type.shape);
  if (!is_floating(type.dtype)) return tensor;
  Tensor wide(DType::float32, type.shape);
  RandomStream random(1, 2);
  for (float& x : wide.span<float>()) x = random.uniform() * 2 - 1;
  convert(wide.view(), tensor.view());
  return tensor;
}

/// One node on one kernel, with its own memory.
class PreparedNode {
 public:
  /// Inputs are random. Returns nothing when the kernel refuses the node.
  static std::unique_ptr<PreparedNode> make(const backend::Backend& cpu,
                                            const backend::Kernel& kernel,
                                            const graph::Graph& graph,
                                            int id) {
    const backend::NodeView node{graph, graph.node(id)};
    if (kernel.op != node.node.op || kernel.reference ||
        (kernel.accepts && !kernel.accepts(node, cpu.capabilities))) {
      return nullptr;
    }
    auto made = std::make_unique<PreparedNode>();
    for (std::size_t i = 0; i < node.inputs(); ++i) made->add(made->in_, node.input(i));
    for (std::size_t i = 0; i < node.outputs(); ++i) made->add(made->out_, node.output(i));
    made->prepared_ = kernel.prepare(node, cpu.capabilities);
    made->workspace_ = AlignedBuffer(made->prepared_.workspace_bytes);
    return made;
  }

  void run() { prepared_.launch->run({in_, out_, workspace_.data()}); }
  /// From now on input `i` is the output of `from`.
  void read(std::size_t i, const PreparedNode& from) { in_[i] = from.out_[0]; }

 private:
  void add(std::vector<TensorView>& views, const graph::TensorType& type) {
    tensors_.push_back(random_tensor(type));
    views.push_back(tensors_.back().view());
  }

  backend::Prepared prepared_;
  AlignedBuffer workspace_;
  std::vector<Tensor> tensors_;
  std::vector<TensorView> in_, out_;
};

struct Candidate {
  std::string kernel;
  std::int64_t products = 0;  ///< as in CostModel::Sample
  std::unique_ptr<PreparedNode> node = {};
  std::vector<std::unique_ptr<PreparedNode>> operands = {};  ///< nodes that compute the inputs
  double scale = 1;  ///< from the computed number of images to k_nominal_batch
};

class TimedKernel {
 public:
  backend::CostModel::Sample sample;  ///< without its time

  /// `rate`: the lower one of the bursts before and after the timing, in flop/s.
  void add(double rate, double seconds) { turns_.push_back({rate, seconds}); }
  /// The second shortest timing at `min_rate` or more; infinity without two. The shortest alone
  /// may be far too short, where the clock of a virtual machine was corrected meanwhile.
  double confirmed(double min_rate) const {
    double shortest = std::numeric_limits<double>::infinity(), second = shortest;
    for (const Turn& turn : turns_) {
      if (turn.rate >= min_rate) second = std::min(second, std::max(shortest, turn.seconds));
      if (turn.rate >= min_rate) shortest = std::min(shortest, turn.seconds);
    }
    return second;
  }

 private:
  struct Turn {
    double rate = 0;
    double seconds = 0;
  };
  std::vector<Turn> turns_;
};

/// Whether a kernel's time depends on the number of partial products of float16.
bool splits(std::string_view kernel, DType dtype) {
  return dtype == DType::float16 &&
         (kernel.ends_with("by halves") || kernel.starts_with("packed/amx"));
}

/// A node on each kernel, other than plain loops, that runs it.
std::vector<Candidate> prepared_node(const backend::Backend& cpu,
                                     const graph::Graph& graph,
                                     int id) {
  std::vector<Candidate> nodes;
  for (const backend::Kernel& kernel : cpu.kernels) {
    auto node = PreparedNode::make(cpu, kernel, graph, id);
    if (node) nodes.push_back({.kernel = std::string(kernel.name), .node = std::move(node)});
  }
  return nodes;
}

/// MatMul and PackedMatMul of a dense layer's forward or backward pass over k_nominal_batch
/// samples, or PackOperand of [k_nominal_batch, k].
void add_matmuls(const backend::Backend& cpu, const Workload& w, std::vector<Candidate>& all) {
  const bool transpose_a = w.kind == Workload::Kind::matmul_backward_weights;
  const bool transpose_b = w.kind == Workload::Kind::matmul_backward_data;
  const std::int64_t n = w.shape[0];
  const std::int64_t m = transpose_a ? w.shape[1] : backend::k_nominal_batch;
  const std::int64_t k = transpose_a ? backend::k_nominal_batch : w.shape[1];
  graph::Graph graph;
  graph::Builder b(graph, graph::op_table());
  const Value x = b.placeholder("x", w.dtype, transpose_a ? Shape{k, m} : Shape{m, k});
  const Value y = b.placeholder("y", w.dtype, transpose_b ? Shape{n, k} : Shape{k, n});
  const int plain =
      b.add_node("MatMul", {x, y}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  const auto pack = [&](Value value, const char* side, bool transpose, std::int64_t products) {
    return b.add("PackOperand",
                 {value},
                 {{"dtype", w.dtype},
                  {"parts", graph::ops::operand_format(w.dtype, products).parts},
                  {"side", std::string(side)},
                  {"transpose", transpose}});
  };
  const auto prepared = [&](int id) { return prepared_node(cpu, graph, id); };
  const auto add = [&](std::vector<Candidate> some) {
    std::move(some.begin(), some.end(), std::back_inserter(all));
  };
  if (w.kind != Workload::Kind::pack) add(prepared(plain));
  if (w.dtype == DType::float32) return;
  std::vector<std::int64_t> counts{1};
  if (w.dtype == DType::float16) counts = {w.products, 1};
  for (const std::int64_t count : counts) {
    const Value left = pack(x, "a", transpose_a, count);
    const Value right = pack(y, "b", transpose_b, count);
    std::vector<Candidate> products =
        prepared(b.add_node("PackedMatMul",
                            {left, right},
                            {{"T", w.dtype},
                             {"Targs", std::vector<DType>{}},
                             {"Tresults", std::vector<DType>{w.dtype}},
                             {"m", m},
                             {"n", n},
                             {"k", k},
                             {"products", count},
                             {"forms", std::string("r")}}));
    if (products.empty()) continue;
    if (w.kind == Workload::Kind::pack) {
      add(prepared(left.node));
      continue;
    }
    for (Candidate& c : products) {
      if (splits(c.kernel, w.dtype)) c.products = w.products;
      for (const Value operand : {left, right}) {
        c.operands.push_back(std::move(prepared(operand.node).front().node));
        c.operands.back()->run();
        c.node->read(c.operands.size() - 1, *c.operands.back());
      }
    }
    add(std::move(products));
  }
}

void add_convolutions(const backend::Backend& cpu, const Workload& w, std::vector<Candidate>& all) {
  const auto [pixels, inputs, outputs, taps, strides] = w.shape;
  const auto root = [](std::int64_t square) {
    std::int64_t side = 1;
    while (side * side < square) ++side;
    return side;
  };
  const std::int64_t size = root(pixels), tap = root(taps), stride = root(strides);
  // Fewer images for a large workload: kernels process images one by one.
  constexpr double k_max_flops = 1e9;
  std::int64_t batch = 128;
  while (batch > 8 &&
         w.flops() / backend::k_nominal_batch * static_cast<double>(batch) > k_max_flops)
    batch /= 2;
  const Shape x{batch, size * stride, size * stride, inputs};
  const Shape filter{tap, tap, inputs, outputs};
  const Shape y{batch, size, size, outputs};
  Attrs attrs{{"strides", Ints{1, stride, stride, 1}}, {"padding", std::string("SAME")}};
  if (w.dtype == DType::float16) attrs.set("float16_products", w.products);

  graph::Graph graph;
  graph::Builder b(graph, graph::op_table());
  const auto number = [&](const Shape& shape) { return b.placeholder("v", w.dtype, shape); };
  const auto sizes = [&](const Shape& shape) { return b.ints({shape.begin(), shape.end()}); };
  int id = -1;
  if (w.kind == Workload::Kind::conv_backward_data) {
    const Value s = sizes(x), f = number(filter), dy = number(y);
    id = b.add_node("Conv2DBackpropInput", {s, f, dy}, attrs);
  } else if (w.kind == Workload::Kind::conv_backward_filter) {
    const Value v = number(x), s = sizes(filter), dy = number(y);
    id = b.add_node("Conv2DBackpropFilter", {v, s, dy}, attrs);
  } else {
    const Value v = number(x), f = number(filter);
    id = b.add_node("Conv2D", {v, f}, attrs);
  }
  for (Candidate& c : prepared_node(cpu, graph, id)) {
    c.products = splits(c.kernel, w.dtype) ? w.products : 0;
    c.scale = static_cast<double>(backend::k_nominal_batch) / static_cast<double>(batch);
    all.push_back(std::move(c));
  }
}

std::vector<Candidate> candidates(const backend::Backend& cpu, const Workload& workload) {
  std::vector<Candidate> all;
  if (is_matmul(workload.kind) || workload.kind == Workload::Kind::pack) {
    add_matmuls(cpu, workload, all);
  } else {
    add_convolutions(cpu, workload, all);
  }
  return all;
}

/// The shortest of several measurements of a run. The clock of a busy virtual machine may have a
/// resolution of a microsecond: a measurement repeats the run until it takes ten times as long.
double time_once(Candidate& c) {
  constexpr double k_budget = 1e-3, k_shortest = 1e-5;
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  std::int64_t runs = 1;
  while (spent < k_budget || std::isinf(best)) {
    const double start = thread_seconds();
    for (std::int64_t i = 0; i < runs; ++i) c.node->run();
    const double seconds = thread_seconds() - start;
    spent += seconds;
    if (seconds < k_shortest) {
      runs *= 2;
    } else {
      best = std::min(best, seconds / static_cast<double>(runs));
    }
  }
  return best * c.scale;
}

/// The best rate of several bursts. A single one may be far too high where the clock of a virtual
/// machine was corrected meanwhile, and all others would count as disturbed.
class BestRate {
 public:
  void add(double rate) {
    if (rate <= best_.back()) return;
    best_.back() = rate;
    std::ranges::sort(best_, std::greater<>());
  }
  double value() const { return best_.back(); }

 private:
  std::array<double, 4> best_{};
};

std::function<double()> burst_of_this_processor(const backend::Backend& cpu) {
  const backend::cpu::PeakUnit* unit = backend::cpu::fastest_unit(cpu.capabilities.isa);
  if (unit == nullptr) {
    throw UserError(ErrorKind::unavailable,
                    {},
                    "no register peak is known for this kind of processor, so disturbed timings "
                    "cannot be detected");
  }
  return [unit] {
    constexpr int k_bursts = 8;
    double flops = 0;
    unit->begin();
    const double start = thread_seconds();
    for (int i = 0; i < k_bursts; ++i) flops += unit->burst();
    const double rate = flops / std::max(thread_seconds() - start, 1e-9);
    unit->end();
    return rate;
  };
}

}  // namespace

std::vector<Workload> tuned_workloads() {
  std::vector<Workload> all;
  const auto add = [&](Workload w) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      w.dtype = dtype;
      w.products = 1;
      if (dtype != DType::float16) all.push_back(w);
      for (w.products = 3; dtype == DType::float16 && w.products <= 4; ++w.products) {
        all.push_back(w);
      }
    }
  };
  for (const std::int64_t k : {8, 32, 64, 128, 784, 2048}) {
    add({.kind = Workload::Kind::pack, .shape = {1, k, 1, 1, 1}});
  }
  for (const auto kind : {Workload::Kind::matmul,
                          Workload::Kind::matmul_backward_data,
                          Workload::Kind::matmul_backward_weights}) {
    for (const std::int64_t n : {1, 10, 32, 64, 128, 512, 2048}) {
      for (const std::int64_t k : {10, 32, 64, 128, 784, 2048}) {
        add({.kind = kind, .shape = {n, k, 1, 1, 1}});
      }
    }
  }
  struct Conv {
    std::int64_t size, inputs, outputs, tap, stride;
  };
  // Outputs of size x size pixels: first layers, the stages of small residual nets, 1 x 1 layers,
  // and the patches of vision transformers.
  constexpr Conv k_convs[] = {
      {14, 1, 16, 5, 2},  {28, 1, 8, 3, 1},    {28, 1, 16, 3, 1},    {28, 1, 32, 3, 1},
      {32, 3, 16, 3, 1},  {32, 3, 32, 3, 1},   {32, 3, 64, 3, 1},    {16, 3, 32, 3, 2},
      {28, 8, 8, 3, 1},   {28, 8, 16, 3, 1},   {28, 16, 16, 3, 1},   {14, 16, 32, 3, 2},
      {14, 16, 32, 1, 2}, {14, 32, 32, 3, 1},  {26, 32, 64, 3, 1},   {14, 32, 64, 3, 1},
      {7, 32, 64, 3, 2},  {7, 32, 64, 1, 2},   {14, 64, 64, 3, 1},   {7, 64, 64, 3, 1},
      {7, 64, 128, 3, 1}, {7, 128, 128, 3, 1}, {28, 128, 128, 3, 1}, {14, 256, 256, 3, 1},
      {28, 64, 64, 1, 1}, {28, 64, 256, 1, 1}, {28, 256, 64, 1, 1},  {14, 16, 64, 1, 1},
      {14, 6, 16, 5, 1},  {28, 16, 32, 5, 1},  {7, 16, 16, 3, 1},    {28, 24, 40, 3, 1},
      {4, 1, 64, 7, 7},   {8, 3, 64, 4, 4},    {14, 3, 192, 16, 16}};
  for (const Conv& c : k_convs) {
    for (const auto kind : {Workload::Kind::conv_forward,
                            Workload::Kind::conv_backward_data,
                            Workload::Kind::conv_backward_filter}) {
      add({.kind = kind,
           .shape = {c.size * c.size, c.inputs, c.outputs, c.tap * c.tap, c.stride * c.stride}});
    }
  }
  return all;
}

TuneResult tune(const backend::Backend& cpu, const TuneOptions& options) {
  require(cpu.capabilities.threads == 1, "kernels are timed on one thread");
  require(options.rounds >= 2, "a time is confirmed by a second one");
  TuneResult result;
  BestRate peak;
  const auto measured_rate = options.burst_rate ? options.burst_rate : burst_of_this_processor(cpu);
  const auto burst_rate = [&] {
    const double rate = measured_rate();
    peak.add(rate);
    return rate;
  };
  for (int i = 0; i < 50; ++i) burst_rate();
  const backend::cpu::PeakUnit* unit = backend::cpu::fastest_unit(cpu.capabilities.isa);
  const int processors = available_processors();
  BestRate peak_of_all;

  const std::vector<Workload>& workloads = options.workloads;
  std::vector<std::vector<TimedKernel>> timed(workloads.size());
  const auto measure = [&](std::size_t at) {
    if (unit != nullptr) peak_of_all.add(backend::cpu::register_rate(*unit, processors));
    std::vector<Candidate> kernels = candidates(cpu, workloads[at]);
    // Kernels whose time does not depend on partial products are timed with three of them.
    if (workloads[at].dtype == DType::float16 && workloads[at].products == 4) {
      std::erase_if(kernels, [](const Candidate& c) { return c.products == 0; });
    }
    timed[at].resize(kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      Workload measured = workloads[at];
      if (measured.dtype == DType::float16) measured.products = kernels[i].products;
      timed[at][i].sample = {kernels[i].kernel, measured, 0};
      kernels[i].node->run();
    }
    for (int turn = 0; turn < options.rounds; ++turn) {
      for (std::size_t i = 0; i < kernels.size(); ++i) {
        const double before = burst_rate();
        const double seconds = time_once(kernels[i]);
        const double after = burst_rate();
        timed[at][i].add(std::min(before, after), seconds);
      }
    }
  };
  // A kernel is disturbed relative to the best rate so far, which a later pass may raise.
  const auto disturbed = [&](const TimedKernel& kernel) {
    return std::isinf(kernel.confirmed(k_full_rate * peak.value()));
  };

  const double start = steady_seconds();
  const auto in_time = [&] { return steady_seconds() - start < options.max_seconds; };
  std::vector<std::size_t> pending(workloads.size());
  std::iota(pending.begin(), pending.end(), std::size_t{0});
  for (int pass = 0; !pending.empty() && (pass == 0 || in_time()); ++pass) {
    for (std::size_t i = 0; i < pending.size() && (pass == 0 || in_time()); ++i) {
      if (options.stop && options.stop()) {
        result.stopped = true;
        return result;
      }
      if (options.progress) options.progress(pass, i, pending.size());
      measure(pending[i]);
    }
    std::erase_if(pending,
                  [&](std::size_t at) { return std::ranges::none_of(timed[at], disturbed); });
  }
  for (const std::vector<TimedKernel>& kernels : timed) {
    for (const TimedKernel& kernel : kernels) {
      if (disturbed(kernel)) ++result.disturbed;
      result.samples.push_back(kernel.sample);
      result.samples.back().seconds =
          kernel.confirmed(disturbed(kernel) ? 0 : k_full_rate * peak.value());
    }
  }
  result.peak_gflops = peak.value() * 1e-9;
  const std::string processor = processor_name(cpu.capabilities);
  result.peaks.push_back({1, peak.value(), processor});
  if (processors > 1 && unit != nullptr) {
    result.peaks.push_back({processors, peak_of_all.value(), processor});
  }
  return result;
}

}  // namespace halfstep::study

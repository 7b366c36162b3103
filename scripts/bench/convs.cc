#include "convs.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "bench.h"
#include "core/parallel.h"
#include "core/tensor.h"
#include "graph/builder.h"
#include "graph/ops/ops.h"
#include "graph/ops/window.h"

namespace halfstep::bench {
namespace {

using Ints = std::vector<std::int64_t>;

struct Conv {
  std::string_view where;
  std::int64_t size, inputs, outputs, taps, stride;
  std::string_view padding;
};

// The convolutions of the configurations in configs/, and some of larger networks.
constexpr Conv k_convs[] = {{"quickstart", 28, 1, 16, 5, 2, "VALID"},
                            {"mnist_cnn 1", 28, 1, 32, 3, 1, "VALID"},
                            {"mnist_cnn 2", 26, 32, 64, 3, 1, "VALID"},
                            {"fashion_cnn 1", 28, 1, 32, 3, 1, "SAME"},
                            {"fashion_cnn 2", 14, 32, 64, 3, 1, "SAME"},
                            {"fashion_cnn 3", 7, 64, 128, 3, 1, "SAME"},
                            {"residual stem", 28, 1, 16, 3, 1, "SAME"},
                            {"residual a", 28, 16, 16, 3, 1, "SAME"},
                            {"residual b1", 28, 16, 32, 3, 2, "SAME"},
                            {"residual skip", 28, 16, 32, 1, 2, "VALID"},
                            {"residual b2", 14, 32, 32, 3, 1, "SAME"},
                            {"3 channels", 32, 3, 32, 3, 1, "SAME"},
                            {"1x1", 28, 64, 256, 1, 1, "VALID"},
                            {"3x3 wide", 28, 128, 128, 3, 1, "SAME"}};
constexpr std::int64_t k_batch = 128;

/// A node on one row, with memory of its own.
class OnRow {
 public:
  OnRow(const backend::Backend& cpu, std::string_view op, const Conv& c, DType dtype) : cpu_(cpu) {
    graph::Builder b(graph_, graph::op_table());
    const Shape x{k_batch, c.size, c.size, c.inputs};
    const Shape filter{c.taps, c.taps, c.inputs, c.outputs};
    const graph::Attrs attrs{{"strides", Ints{1, c.stride, c.stride, 1}},
                             {"padding", std::string(c.padding)}};
    const Shape y = graph::ops::conv_geometry(attrs, x, filter).y_shape();
    const auto number = [&](const Shape& shape) {
      tensors_.push_back(random_tensor({dtype, shape}));
      return b.placeholder("x", dtype, shape);
    };
    const auto sizes = [&](const Shape& shape) {
      tensors_.push_back(random_tensor({DType::int32, {4}}));
      return b.ints({shape.begin(), shape.end()});
    };
    if (op == "Conv2DBackpropInput") {
      const auto s = sizes(x), f = number(filter), dy = number(y);
      id_ = b.add_node(op, {s, f, dy}, attrs);
    } else if (op == "Conv2DBackpropFilter") {
      const auto v = number(x), s = sizes(filter), dy = number(y);
      id_ = b.add_node(op, {v, s, dy}, attrs);
    } else {
      const auto v = number(x), f = number(filter);
      id_ = b.add_node(op, {v, f}, attrs);
    }
    tensors_.emplace_back(dtype, graph_.node(id_).outputs[0].shape);
    for (const Tensor& t : tensors_) in_.push_back(t.view());
    out_.push_back(in_.back());
    in_.pop_back();
    flops_ = 2.0 * static_cast<double>(y.elements() * c.taps * c.taps * c.inputs);
  }

  bool take(const backend::Kernel& row) {
    const backend::NodeView node{graph_, graph_.node(id_)};
    if (row.op != node.node.op || row.reference || !row.accepts(node, cpu_.capabilities)) {
      return false;
    }
    prepared_ = row.prepare(node, cpu_.capabilities);
    workspace_ = AlignedBuffer(prepared_.workspace_bytes);
    return true;
  }
  void run() { prepared_.launch->run({in_, out_, workspace_.data()}); }
  double flops() const { return flops_; }

 private:
  const backend::Backend& cpu_;
  graph::Graph graph_;
  int id_ = -1;
  backend::Prepared prepared_;
  AlignedBuffer workspace_;
  std::vector<Tensor> tensors_;
  std::vector<TensorView> in_, out_;
  double flops_ = 0;
};

/// Wall time; on one thread (taskset -c 0) processor time, which neighbours disturb less.
double seconds() {
  timespec now{};
  clock_gettime(thread_count() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

void bench_convs(const backend::Backend& cpu, std::span<char* const> words) {
  for (const Conv& c : k_convs) {
    for (const std::string_view op : {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"}) {
      for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
        std::optional<OnRow> node;
        for (const backend::Kernel& row : cpu.kernels) {
          const std::string about = fmt::format("{} {} {} {}", c.where, op, name(dtype), row.name);
          const auto wanted = [&](std::string_view word) {
            return about.find(word) != std::string::npos;
          };
          if (row.op != op || !std::all_of(words.begin(), words.end(), wanted)) continue;
          if (!node) node.emplace(cpu, op, c, dtype);
          if (!node->take(row)) continue;
          std::vector<double> samples;
          node->run();
          for (double spent = 0; samples.size() < 12 || (spent < 0.05 && samples.size() < 200);) {
            const double start = seconds();
            node->run();
            samples.push_back(seconds() - start);
            spent += samples.back();
          }
          std::sort(samples.begin(), samples.end());
          fmt::print("{:14} {:20} {:8} {:8.3f} ms (median {:8.3f}) {:6.0f} GFLOP/s  {}\n",
                     c.where,
                     op,
                     name(dtype),
                     samples[0] * 1e3,
                     samples[samples.size() / 2] * 1e3,
                     node->flops() / samples[0] * 1e-9,
                     row.name);
        }
      }
    }
  }
}

}  // namespace halfstep::bench

#pragma once
// Shared by the benchmarks: interleaved samples, nodes on kernels, raw oneDNN matmuls.

#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "core/tensor.h"

namespace halfstep::bench {

/// Median seconds of each function, interleaved for about `budget` seconds: wall time; on one
/// thread (taskset -c 0) processor time, which neighbours disturb less.
std::vector<double> medians(std::span<const std::function<void()>> functions, double budget = 1);

/// Numbers in [-1, 1): zeros would run faster than real data.
Tensor random_tensor(const graph::TensorType& type);

/// One node on the backend's first kernel, with memory of its own.
class Node {
 public:
  Node(const backend::Backend& backend,
       std::string_view op,
       const std::vector<graph::TensorType>& in,
       graph::Attrs attrs = {});

  void run() { prepared_.launch->run({in_, out_, workspace_.data()}); }
  /// From now on input `i` is the output of `from`.
  void read(std::size_t i, const Node& from) { in_[i] = from.out_[0]; }
  const graph::TensorType& result() const { return graph_.node(id_).outputs[0]; }
  std::string_view kernel() const { return kernel_->name; }
  double bytes() const;

 private:
  graph::Graph graph_;
  int id_ = -1;
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

/// oneDNN's matmul on operands as stored, or with b in a layout of its choice (reordered in every
/// call, as weights change).
class RawMatmul {
 public:
  RawMatmul(const Product& p, DType dtype, bool any);

  void run();

 private:
  dnnl::memory filled(const dnnl::memory::desc& desc, DType dtype) const;

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::matmul matmul_;
  dnnl::memory a_, b_, y_, packed_;
};

}  // namespace halfstep::bench

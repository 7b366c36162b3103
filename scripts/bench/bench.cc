#include "bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>

#include "backend/cpu/onednn/api.h"
#include "core/parallel.h"
#include "core/philox.h"
#include "graph/builder.h"
#include "graph/ops/ops.h"

namespace halfstep::bench {
namespace {

double seconds(const std::function<void()>& f) {
  const std::clock_t processor = std::clock();
  const auto start = std::chrono::steady_clock::now();
  f();
  if (thread_count() == 1) return static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::vector<double> medians(std::span<const std::function<void()>> functions, double budget) {
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

Tensor random_tensor(const graph::TensorType& type) {
  Tensor wide(DType::float32, type.shape);
  RandomStream random(1, 2);
  for (float& x : wide.span<float>()) x = random.uniform() * 2 - 1;
  Tensor tensor(type.dtype, type.shape);
  convert(wide.view(), tensor.view());
  return tensor;
}

Node::Node(const backend::Backend& backend,
           std::string_view op,
           const std::vector<graph::TensorType>& in,
           graph::Attrs attrs) {
  graph::Builder b(graph_, graph::op_table());
  std::vector<graph::Value> values;
  for (const graph::TensorType& type : in) {
    values.push_back(b.placeholder("x", type.dtype, type.shape));
    tensors_.push_back(random_tensor(type));
    in_.push_back(tensors_.back().view());
  }
  id_ = b.add_node(op, values, std::move(attrs));
  const backend::NodeView node{graph_, graph_.node(id_)};
  kernel_ = backend::choose(backend, node).kernel;
  prepared_ = kernel_->prepare(node, backend.capabilities);
  workspace_ = AlignedBuffer(prepared_.workspace_bytes);
  for (const graph::TensorType& type : graph_.node(id_).outputs) {
    tensors_.emplace_back(type.dtype, type.shape);
    out_.push_back(tensors_.back().view());
  }
}

double Node::bytes() const {
  double sum = 0;
  for (const auto& list : {in_, out_}) {
    for (const TensorView& view : list) sum += static_cast<double>(view.bytes());
  }
  return sum;
}

RawMatmul::RawMatmul(const Product& p, DType dtype, bool any)
    : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
  using Memory = dnnl::memory;
  const auto type = dtype == DType::bfloat16 ? Memory::data_type::bf16 : Memory::data_type::f32;
  const auto desc = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
    return Memory::desc(
        {rows, columns}, type, transposed ? Memory::dims{1, rows} : Memory::dims{columns, 1});
  };
  const auto a = desc(p.m, p.k, p.ta), b = desc(p.k, p.n, p.tb), y = desc(p.m, p.n, false);
  const Memory::desc free({p.k, p.n}, type, Memory::format_tag::any);
  const auto how = backend::cpu::onednn::matmul(engine_, a, any ? free : b, y);
  matmul_ = dnnl::matmul(how);
  a_ = filled(a, dtype);
  b_ = filled(b, dtype);
  y_ = Memory(y, engine_);
  packed_ = how.weights_desc() == b ? b_ : Memory(how.weights_desc(), engine_);
}

void RawMatmul::run() {
  if (packed_.get() != b_.get()) dnnl::reorder(b_, packed_).execute(stream_, b_, packed_);
  matmul_.execute(stream_, {{DNNL_ARG_SRC, a_}, {DNNL_ARG_WEIGHTS, packed_}, {DNNL_ARG_DST, y_}});
  stream_.wait();
}

dnnl::memory RawMatmul::filled(const dnnl::memory::desc& desc, DType dtype) const {
  dnnl::memory memory(desc, engine_);
  const auto elements = static_cast<std::int64_t>(desc.get_size() / size_bytes(dtype));
  const Tensor data = random_tensor({dtype, {elements}});
  std::memcpy(memory.get_data_handle(), data.view().data, data.bytes());
  return memory;
}

}  // namespace halfstep::bench

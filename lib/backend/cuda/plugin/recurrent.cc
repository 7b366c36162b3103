// Recurrent layers: all steps in one own launch where the recurrent kernel is small, else step by
// step: cuBLASLt multiplies the state by the recurrent kernel in float32 sums, and an own kernel
// computes gates and state. Two launches a step; four where the candidate's matmul follows the
// reset gate. The program counts them in graph_nodes() of lib/analysis/gpu_prediction.h.

#include "backend/cuda/kernels/recurrent.h"

#include <algorithm>

#include "backend/cuda/kernels/array.h"
#include "backend/cuda/kernels/elementwise.h"
#include "backend/cuda/plugin/library_matmul.h"
#include "backend/functions/arithmetic.h"

namespace halfstep::backend::cuda::plugin {
namespace {

using graph::ops::RnnGeometry;

/// The pieces of a workspace, one after the other.
struct Pieces {
  std::size_t bytes = 0;

  std::size_t add(std::int64_t elements, DType dtype) {
    const std::size_t offset = bytes;
    bytes += aligned(static_cast<std::size_t>(elements) * size_bytes(dtype));
    return offset;
  }
};

/// The matmuls of a step by the recurrent kernel [units, columns] or its transpose. The candidate's
/// part of a kernel is copied once a node, since the library reads aligned addresses.
class StateMatmuls {
 public:
  StateMatmuls(
      const RnnGeometry& g, DType dtype, bool transposed, const DeviceContext& context, Pieces& w)
      : stream_(context.stream()) {
    MatmulKey key{.m = g.batch,
                  .n = transposed ? g.units : g.state_columns(),
                  .k = transposed ? g.state_columns() : g.units,
                  .transpose_b = transposed,
                  .in = dtype,
                  .out = DType::float32,
                  .float32 = context.float32};
    if (g.state_columns() < g.columns()) {
      MatmulKey square = key;
      square.n = square.k = g.units;
      candidate_ = LibraryMatmul::get(square, context);
      const Shape part{g.units, g.units};
      const std::int64_t begin[] = {0, g.state_columns()};
      copy_ = {.element_bytes = size_bytes(dtype),
               .map = kernels::map_of_slice(Shape{g.units, g.columns()}, begin, part)};
      part_ = w.add(part.elements(), dtype);
      key.row_b = g.columns();
    }
    gates_ = LibraryMatmul::get(key, context);
    library_ = w.bytes;
    w.bytes += aligned(
        std::max(gates_->workspace_bytes(), candidate_ ? candidate_->workspace_bytes() : 0));
  }

  bool has_candidate() const { return candidate_ != nullptr; }
  /// Before the first step.
  void begin(const void* kernel, std::byte* workspace) const {
    if (!candidate_) return;
    kernels::CopyParams copy = copy_;
    copy.x = kernel;
    copy.y = workspace + part_;
    kernels::copy(stream_, copy);
  }
  void gates(
      const void* x, const void* kernel, void* y, std::byte* workspace, bool adds = false) const {
    gates_->run({.a = x, .b = kernel, .c = y, .accumulate = adds}, workspace + library_);
  }
  void candidate(const void* x, void* y, std::byte* workspace) const {
    candidate_->run({.a = x, .b = workspace + part_, .c = y}, workspace + library_);
  }

  PreparedKernel work(std::function<void(const Args&)> run, std::size_t workspace_bytes) const {
    std::string text = gates_->algorithm();
    if (candidate_) text += "; candidate: " + candidate_->algorithm();
    return {std::move(run), workspace_bytes, text, gates_->uses_tensor_cores()};
  }

 private:
  std::shared_ptr<LibraryMatmul> gates_, candidate_;
  kernels::CopyParams copy_;
  std::size_t part_ = 0, library_ = 0;  ///< offsets in the workspace
  Stream stream_;
};

kernels::RnnStep step_of(const NodeView& node, const RnnGeometry& g) {
  const auto activation = [&](std::string_view attr) {
    return kernels::activation_of(node.attrs().get<std::string>(attr));
  };
  return {.dtype = node.input(0).dtype,
          .geometry = g,
          .activation = activation("activation"),
          .recurrent_activation = activation("recurrent_activation")};
}

/// The tensors of an RNN with `inputs` inputs.
void set_tensors(kernels::RnnParams& params, std::size_t inputs, const Args& a) {
  kernels::RnnStep& step = params.step;
  step.initial_h = a.in[3].data;
  step.initial_c = a.in[4].as<float>();
  step.mask = inputs > 5 ? a.in[5].data : nullptr;
  step.taken = inputs > 6 ? a.in[6].as<bool>() : nullptr;
  step.output = a.out[0].data;
  step.gates = a.out[2].data;
  step.carries = a.out[3].as<float>();
  params.projections = a.in[0].data;
  params.bias = a.in[2].data;
  params.last_c = a.out[1].as<float>();
  params.states = a.out[4].data;
}

/// The tensors of an RNNGrad with `inputs` inputs.
void set_tensors(kernels::RnnGradParams& params, std::size_t inputs, const Args& a) {
  kernels::RnnStep& step = params.step;
  step.initial_h = a.in[3].data;
  step.initial_c = a.in[4].as<float>();
  step.output = a.in[5].data;
  step.gates = a.in[6].data;
  step.carries = a.in[7].as<float>();
  step.mask = inputs > 8 ? a.in[8].data : nullptr;
  step.taken = inputs > 9 ? a.in[9].as<bool>() : nullptr;
  params.dy = a.in[0].data;
  params.dlast_c = a.in[1].as<float>();
  params.dprojections = a.out[0].data;
  params.drecurrent = a.out[1].data;
  params.dinitial_h = a.out[2].data;
  params.dinitial_c = a.out[3].as<float>();
}

/// Whether h has a gradient by other ways than the matmul of the next step.
bool has_direct_gradient(const NodeView& grad_node, const RnnGeometry& g) {
  return g.is_gru() || grad_node.inputs() > 9;
}

PreparedKernel prepare_rnn(const NodeView& node, const DeviceContext& context) {
  const RnnGeometry g = graph::ops::rnn_geometry(node.attrs(), node.input(0).shape);
  if (g.batch == 0) return {[](const Args&) {}};
  kernels::RnnParams params{.step = step_of(node, g)};
  const DType dtype = params.step.dtype;
  Pieces w;
  const StateMatmuls matmuls(g, dtype, false, context, w);
  const std::size_t operand = w.add(g.batch * g.units, dtype);
  const std::size_t sums = w.add(g.batch * g.state_columns(), DType::float32);
  const std::size_t candidate =
      w.add(matmuls.has_candidate() ? g.batch * g.units : 0, DType::float32);
  const auto run = [=, inputs = node.inputs(), stream = context.stream()](const Args& a) mutable {
    set_tensors(params, inputs, a);
    kernels::RnnStep& step = params.step;
    const bool masked = step.mask != nullptr;
    params.sums = reinterpret_cast<float*>(a.workspace + sums);
    params.candidate = reinterpret_cast<float*>(a.workspace + candidate);
    params.operand = a.workspace + operand;
    matmuls.begin(a.in[1].data, a.workspace);
    if (masked) {
      const Shape state{g.batch, g.units};
      kernels::binary_of(functions::Mul::op)(stream,
                                             {.dtype = dtype,
                                              .a = step.initial_h,
                                              .b = step.mask,
                                              .y = params.operand,
                                              .a_shape = state,
                                              .b_shape = state,
                                              .shape = state});
    }
    for (step.number = 0; step.number < g.steps; ++step.number) {
      const bool given = step.number == 0 && !masked;
      matmuls.gates(
          given ? step.initial_h : params.operand, a.in[1].data, a.workspace + sums, a.workspace);
      if (matmuls.has_candidate()) {
        kernels::rnn_reset(stream, params);
        matmuls.candidate(params.operand, a.workspace + candidate, a.workspace);
      }
      kernels::rnn_gates(stream, params);
    }
  };
  return matmuls.work(run, w.bytes);
}

PreparedKernel prepare_rnn_grad(const NodeView& node, const DeviceContext& context) {
  const RnnGeometry g = graph::ops::rnn_grad_geometry(node.attrs(), node.input(0).shape);
  if (g.batch == 0) return {[](const Args&) {}};
  kernels::RnnGradParams params{.step = step_of(node, g)};
  const DType dtype = params.step.dtype;
  const bool has_direct = has_direct_gradient(node, g);
  Pieces w;
  const StateMatmuls matmuls(g, dtype, true, context, w);
  const std::size_t operand = w.add(g.batch * g.state_columns(), dtype);
  const std::size_t candidate = w.add(matmuls.has_candidate() ? g.batch * g.units : 0, dtype);
  const std::size_t dh = w.add(g.batch * g.units, DType::float32);
  const std::size_t direct = w.add(has_direct ? g.batch * g.units : 0, DType::float32);
  const auto run = [=, inputs = node.inputs(), stream = context.stream()](const Args& a) mutable {
    set_tensors(params, inputs, a);
    kernels::RnnStep& step = params.step;
    params.dh = reinterpret_cast<float*>(a.workspace + dh);
    params.direct = has_direct ? reinterpret_cast<float*>(a.workspace + direct) : nullptr;
    params.operand = a.workspace + operand;
    params.candidate_operand = a.workspace + candidate;
    matmuls.begin(a.in[2].data, a.workspace);
    for (step.number = g.steps - 1; step.number >= 0; --step.number) {
      kernels::rnn_grad_gates(stream, params);
      if (matmuls.has_candidate()) {
        matmuls.candidate(params.candidate_operand, params.dh, a.workspace);
        kernels::rnn_grad_reset(stream, params);
      }
      matmuls.gates(params.operand, a.in[2].data, params.dh, a.workspace, matmuls.has_candidate());
    }
    step.number = 0;
    kernels::rnn_grad_finish(stream, params);
  };
  return matmuls.work(run, w.bytes);
}

/// The recurrent kernel is copied where its address is not aligned to a float32.
PreparedKernel prepare_rnn_steps(const NodeView& node, const DeviceContext& context) {
  const RnnGeometry g = graph::ops::rnn_geometry(node.attrs(), node.input(0).shape);
  if (g.batch == 0) return {[](const Args&) {}};
  kernels::RnnParams params{.step = step_of(node, g)};
  const DType dtype = params.step.dtype;
  const Shape shape{g.units, g.columns()};
  const kernels::CopyParams whole{.element_bytes = size_bytes(dtype),
                                  .map = kernels::map_of_broadcast(shape, shape)};
  const auto run = [=, inputs = node.inputs(), stream = context.stream()](const Args& a) mutable {
    set_tensors(params, inputs, a);
    const void* kernel = a.in[1].data;
    if (reinterpret_cast<std::uintptr_t>(kernel) % sizeof(float) != 0) {
      kernels::CopyParams copy = whole;
      copy.x = kernel;
      copy.y = a.workspace;
      kernels::copy(stream, copy);
      kernel = a.workspace;
    }
    kernels::rnn_steps(stream, params, kernel);
  };
  return {run, static_cast<std::size_t>(kernels::kernel_bytes(g, dtype))};
}

PreparedKernel prepare_rnn_grad_steps(const NodeView& node, const DeviceContext& context) {
  const RnnGeometry g = graph::ops::rnn_grad_geometry(node.attrs(), node.input(0).shape);
  if (g.batch == 0) return {[](const Args&) {}};
  kernels::RnnGradParams params{.step = step_of(node, g)};
  const DType dtype = params.step.dtype;
  constexpr std::int64_t swapped[] = {1, 0};
  const kernels::CopyParams transpose{
      .element_bytes = size_bytes(dtype),
      .map = kernels::map_of_transpose(Shape{g.units, g.columns()}, swapped)};
  Pieces w;
  const std::size_t transposed = w.add(g.units * g.columns(), dtype);
  const bool has_direct = has_direct_gradient(node, g);
  const std::size_t direct = w.add(has_direct ? g.batch * g.units : 0, DType::float32);
  const auto run = [=, inputs = node.inputs(), stream = context.stream()](const Args& a) mutable {
    set_tensors(params, inputs, a);
    params.direct = has_direct ? reinterpret_cast<float*>(a.workspace + direct) : nullptr;
    kernels::CopyParams copy = transpose;
    copy.x = a.in[2].data;
    copy.y = a.workspace + transposed;
    kernels::copy(stream, copy);
    kernels::rnn_grad_steps(stream, params, copy.y);
  };
  return {run, w.bytes};
}

}  // namespace

std::vector<Implementation> recurrent_kernels() {
  return {
      {"cuda/rnn", prepare_rnn_steps},
      {"cuda/rnn_grad", prepare_rnn_grad_steps},
      {"cublaslt/rnn", prepare_rnn},
      {"cublaslt/rnn_grad", prepare_rnn_grad},
  };
}

}  // namespace halfstep::backend::cuda::plugin

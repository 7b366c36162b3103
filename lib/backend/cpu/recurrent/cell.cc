#include "backend/cpu/recurrent/cell.h"

#include <algorithm>

#include "backend/cpu/kernels.h"

namespace halfstep::backend::cpu::recurrent {
namespace {

/// An op with its gradient, and whether the gradient's first operand is dy.
struct ActivationOps {
  std::string_view op, grad;
  bool dy_first;
};
constexpr ActivationOps k_activations[] = {
    {"Relu", "ReluGrad", true}, {"Sigmoid", "SigmoidGrad", false}, {"Tanh", "TanhGrad", false}};

/// The matmul by a kernel [depth, columns], or by its transpose.
PanelMatMul matmul(const NodeView& node,
                   const Capabilities& capabilities,
                   I64 depth,
                   I64 columns,
                   bool transposed) {
  const DType dtype = node.input(0).dtype;
  return {capabilities.isa,
          dtype,
          packed::half_microkernel(capabilities.isa, dtype),
          transposed ? columns : depth,
          transposed ? depth : columns,
          transposed};
}

}  // namespace

RowActivation::RowActivation(const vector::Loops& loops, std::string_view op) {
  for (const ActivationOps& ops : k_activations) {
    if (ops.op != op) continue;
    f_ = find_entry(loops.maps, ops.op)->loop;
    grad_ = find_entry(loops.maps, ops.grad)->loop;
    dy_first_ = ops.dy_first;
  }
}

void RowActivation::apply(float* y, const float* x, I64 n) const {
  if (f_ != nullptr) {
    f_(y, &x, n, 0);
  } else if (x != y) {
    std::copy_n(x, n, y);
  }
}

void RowActivation::grad(float* dx, const float* y, const float* dy, I64 n) const {
  if (grad_ != nullptr) {
    RowMath::apply(grad_, dx, dy_first_ ? dy : y, dy_first_ ? y : dy, n);
  } else if (dx != dy) {
    std::copy_n(dy, n, dx);
  }
}

RowMath::RowMath(const vector::Loops& loops, const NodeView& node)
    : add(find_entry(loops.maps, "AddV2")->loop),
      sub(find_entry(loops.maps, "Sub")->loop),
      mul(find_entry(loops.maps, "Mul")->loop),
      cell(loops, node.attrs().get<std::string>("activation")),
      gate(loops, node.attrs().get<std::string>("recurrent_activation")),
      source(loops, node.input(0).dtype),
      sink(loops, node.input(0).dtype) {
  const auto is = [&](std::string_view attr, std::string_view value) {
    return node.attrs().get<std::string>(attr) == value;
  };
  if (!is("rnn_mode", "lstm") || !is("activation", "Tanh")) return;
  if (!is("recurrent_activation", "Sigmoid")) return;
  const DType dtype = node.input(0).dtype;
  lstm_stores = dtype != DType::bfloat16;
  lstm = loops.lstm[dtype == DType::float16 ? 1 : 0];
  lstm_grad = loops.lstm_grad[dtype == DType::float16 ? 1 : 0];
}

Panels::Panels(const RnnGeometry& g, int threads) : batch(g.batch) {
  parts = std::clamp<I64>(count(), 1, threads);
}

Pass::Pass(const NodeView& node,
           const Capabilities& capabilities,
           const RnnGeometry& g,
           bool transposed,
           std::size_t masks)
    : g_(g),
      math_(vector::loops(capabilities.isa), node),
      matmul_(matmul(node, capabilities, g.units, g.state_columns(), transposed)),
      candidate_(g.mode == RnnMode::gru_reset_before
                     ? std::optional(matmul(node, capabilities, g.units, g.units, transposed))
                     : std::nullopt),
      panels_(g, capabilities.threads),
      masked_(node.inputs() > masks),
      all_unmasked_(node.inputs() <= masks + 1) {}

void Pass::pack(const Args& args, const TensorView& kernel) const {
  matmul_.pack(kernel.as<std::byte>(), g_.columns(), at<std::byte>(args, kernel_));
  if (!candidate_) return;
  candidate_->pack(
      math_.at(kernel, g_.state_columns()), g_.columns(), at<std::byte>(args, candidate_kernel_));
}

Accepts accepts(const NodeView& node, const Capabilities&) {
  const DType dtype = node.input(0).dtype;
  if (Accepts a = vector::accepts_dtype(dtype); !a) return a;
  if (node.input(4).dtype != DType::float32) return Accepts::no("a carry in float64");
  return Accepts::yes();
}

}  // namespace halfstep::backend::cpu::recurrent

namespace halfstep::backend::cpu {

std::span<const Kernel> recurrent_kernels() {
  static const Kernel k_kernels[] = {
      {"RNN", "recurrent/rnn", recurrent::accepts, recurrent::prepare_forward},
      {"RNNGrad", "recurrent/rnn_grad", recurrent::accepts, recurrent::prepare_backward},
  };
  return k_kernels;
}

}  // namespace halfstep::backend::cpu

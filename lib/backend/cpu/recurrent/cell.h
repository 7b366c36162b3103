#pragma once
// The properties of a node and the memory of a panel, shared by forward and backward pass.

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "backend/cpu/recurrent/panel_matmul.h"
#include "backend/cpu/vector/kernels.h"
#include "backend/cpu/workspace_layout.h"
#include "backend/kernel.h"
#include "core/parallel.h"
#include "graph/ops/recurrent.h"

namespace halfstep::backend::cpu::recurrent {

using I64 = std::int64_t;
using graph::ops::RnnGeometry;
using graph::ops::RnnMode;

/// An activation over a row of float32, and its gradient from its result.
class RowActivation {
 public:
  RowActivation(const vector::Loops& loops, std::string_view op);

  void apply(float* y, const float* x, I64 n) const;
  /// dx = dy * slope, of the result y.
  void grad(float* dx, const float* y, const float* dy, I64 n) const;

 private:
  vector::Map f_ = nullptr, grad_ = nullptr;  ///< null: the identity
  bool dy_first_ = false;
};

/// Elementwise loops over rows of float32.
struct RowMath {
  vector::Map add, sub, mul;
  RowActivation cell, gate;
  /// Fused loops of a step of an lstm with tanh and sigmoid; null for other layers.
  void (*lstm)(const vector::LstmRow& s, I64 n) = nullptr;
  void (*lstm_grad)(const vector::LstmGradRow& s, I64 n) = nullptr;
  /// Whether these loops read and write rows of the dtype of the node; otherwise float32.
  bool lstm_stores = false;
  vector::Source source;  ///< of the node's dtype
  vector::Sink sink;

  RowMath(const vector::Loops& loops, const NodeView& node);

  /// y = f(a, b); y may be one of them.
  static void apply(vector::Map f, float* y, const float* a, const float* b, I64 n) {
    const float* in[] = {a, b};
    f(y, in, n, 0);
  }
  /// The address of element i of a tensor of the node's dtype.
  std::byte* at(const TensorView& x, I64 i) const { return x.as<std::byte>() + i * source.size; }
  /// Rounds a row to the node's dtype and stores it from element `i` on.
  void store(void* to, I64 i, I64 n, const float* x) const { sink.write(to, i, n, x); }
};

/// The panels of 32 samples of a batch, split into parts that each run on one thread.
struct Panels {
  I64 batch = 0;
  I64 parts = 1;

  Panels(const RnnGeometry& g, int threads);

  I64 count() const { return divide_up(batch, packed::k_block_size); }
  I64 rows(I64 panel) const {
    return std::min(packed::k_block_size, batch - panel * packed::k_block_size);
  }
  /// Calls body(panel, part) for all panels, on all threads.
  template <class F>
  void for_each(const PanelMatMul& matmul, const F& body) const {
    parallel_for(parts, 1, [&](I64 begin, I64 end) {
      matmul.begin();
      for (I64 part = begin; part < end; ++part) {
        for (I64 i = count() * part / parts; i < count() * (part + 1) / parts; ++i) body(i, part);
      }
      matmul.end();
    });
  }
};

/// The members that both passes share. The workspace holds memory that all threads read, then the
/// memory of each part.
class Pass {
 public:
  std::size_t workspace_bytes() const {
    return static_cast<std::size_t>(part_offset(panels_.parts));
  }

 protected:
  static constexpr I64 k_float = sizeof(float);

  /// `transposed`: matmuls are by the transposed kernel. `masks`: the index of the dropout masks of
  /// h; these and the next input, the mask of steps, are optional.
  Pass(const NodeView& node,
       const Capabilities& capabilities,
       const RnnGeometry& g,
       bool transposed,
       std::size_t masks);

  template <class T>
  static T* at(const Args& args, I64 offset) {
    return reinterpret_cast<T*>(args.workspace + offset);
  }
  I64 part_offset(I64 part) const { return shared_layout_.bytes() + part * part_layout_.bytes(); }
  /// Bytes of z for one panel.
  I64 z_bytes(const PanelMatMul& matmul) const {
    return packed::k_block_size * matmul.stride() * k_float;
  }
  void pack(const Args& args, const TensorView& kernel) const;

  RnnGeometry g_;
  RowMath math_;
  PanelMatMul matmul_;
  std::optional<PanelMatMul> candidate_;  ///< of a candidate whose operand has a reset gate
  Panels panels_;
  bool masked_;
  bool all_unmasked_;  ///< no step is masked
  WorkspaceLayout shared_layout_, part_layout_;
  I64 kernel_ = shared_layout_.reserve(matmul_.packed_bytes());
  I64 candidate_kernel_ = shared_layout_.reserve(candidate_ ? candidate_->packed_bytes() : 0);
  I64 scratch_ = part_layout_.reserve(matmul_.scratch_bytes());
};

/// RNN and RNNGrad of float32, float16 and bfloat16, with a float32 carry.
Accepts accepts(const NodeView& node, const Capabilities& capabilities);
Prepared prepare_forward(const NodeView& node, const Capabilities& capabilities);
Prepared prepare_backward(const NodeView& node, const Capabilities& capabilities);

}  // namespace halfstep::backend::cpu::recurrent

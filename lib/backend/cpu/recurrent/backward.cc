// RNNGrad (graph/ops/recurrent.cc) panel by panel: all steps of 32 samples on one thread, in
// reverse order. The gradients of gates are computed in float32 and rounded once; the matmul reads
// them rounded, and its result and the gradient of h are float32. Bit-identical for every number of
// threads.

#include <algorithm>

#include "backend/cpu/recurrent/cell.h"

namespace halfstep::backend::cpu::recurrent {
namespace {

class Backward : public Pass {
 public:
  Backward(const NodeView& node, const Capabilities& capabilities)
      : Pass(node,
             capabilities,
             graph::ops::rnn_grad_geometry(node.attrs(), node.input(0).shape),
             true,
             8) {}

  void run(const Args& args) const {
    pack(args, args.in[2]);
    panels_.for_each(matmul_, [&](I64 panel, I64 part) {
      Panel{*this, args, panel * packed::k_block_size, panels_.rows(panel), part}.run();
    });
  }

 private:
  /// The backward pass of a panel.
  struct Panel {
    const Backward& f;
    const Args& args;
    I64 first, rows, part;

    const RnnGeometry& g = f.g_;
    const RowMath& m = f.math_;
    I64 n = g.units;
    I64 base = f.part_offset(part);
    /// The gradient of h through the matmul, and the rest of it: of a gru, and of a masked step.
    float* dh = at<float>(args, base + f.dh_);
    float* direct = at<float>(args, base + f.direct_);
    /// Rows of a sample: gradients of the gates before activation, gates, dy, previous state,
    /// scratch.
    float* dz = at<float>(args, base + f.rows_);
    float *saved = dz + g.columns(), *dy = saved + 4 * n, *before = dy + n;
    float *spare = before + n, *other = spare + n, *third = other + n;

    I64 row_at(I64 r, I64 step) const { return (first + r) * g.steps + g.position(step); }
    float* dh_of(I64 r) const { return dh + r * f.matmul_.stride(); }
    float* doperand_of(I64 r) const {
      return at<float>(args, base + f.doperand_) + r * f.candidate_->stride();
    }
    float* dc_of(I64 r) const { return args.out[3].as<float>() + (first + r) * n; }

    void run() {
      const bool lstm = g.mode == RnnMode::lstm, gru = g.mode == RnnMode::gru;
      std::fill_n(direct, rows * n, 0.0F);
      for (I64 r = 0; r < rows; ++r) std::fill_n(dh_of(r), n, 0.0F);
      if (lstm) std::copy_n(args.in[1].as<float>() + first * n, rows * n, dc_of(0));
      for (I64 step = g.steps; step-- > 0;) {
        for (I64 r = 0; r < rows; ++r) backward_step(r, step);
        if (f.candidate_) reset(step);
        const std::byte* sums = args.out[gru ? 1 : 0].as<std::byte>();
        f.matmul_.multiply(sums + row_at(0, step) * g.columns() * m.source.size,
                           g.steps * g.columns(),
                           rows,
                           at<std::byte>(args, f.kernel_),
                           at<std::byte>(args, base + f.scratch_),
                           dh);
        for (I64 r = 0; f.candidate_ && r < rows; ++r) {
          RowMath::apply(m.add, dh_of(r), dh_of(r), doperand_of(r), n);
        }
        if (f.masked_) {
          for (I64 r = 0; r < rows; ++r) {
            const float* mask = m.source.read(args.in[8].data, (first + r) * n, n, spare);
            RowMath::apply(m.mul, dh_of(r), dh_of(r), mask, n);
          }
        }
      }
      for (I64 r = 0; r < rows; ++r) {
        RowMath::apply(m.add, spare, dh_of(r), direct + r * n, n);
        m.store(args.out[2].data, (first + r) * n, n, spare);
      }
    }

    /// h before a step.
    const float* previous(I64 r, I64 step) const {
      return step == 0 ? m.source.read(args.in[3].data, (first + r) * n, n, before)
                       : m.source.read(args.in[5].data, row_at(r, step - 1) * n, n, before);
    }

    /// Computes the gradients of the gates of one sample at a step.
    void backward_step(I64 r, I64 step) {
      const I64 row = row_at(r, step);
      const bool unmasked = f.all_unmasked_ || args.in[9].as<bool>()[row];
      float* total = dh_of(r);
      if (m.lstm_grad != nullptr && unmasked) {
        fused_lstm(r, step);
        if (!f.all_unmasked_) std::fill_n(direct + r * n, n, 0.0F);
        return;
      }
      const float* dy_row = m.source.read(args.in[0].data, row * n, n, dy);
      RowMath::apply(m.add, total, total, direct + r * n, n);
      RowMath::apply(m.add, total, total, dy_row, n);
      if (!unmasked) return skip_step(r, row, total);
      if (!f.all_unmasked_) std::fill_n(direct + r * n, n, 0.0F);
      const float* gates = g.saved > 0 ? m.source.read(args.in[6].data, row * 4 * n, 4 * n, saved)
                                       : m.source.read(args.in[5].data, row * n, n, saved);
      if (g.mode == RnnMode::lstm) {
        lstm(r, step, total, gates);
      } else if (g.is_gru()) {
        gru(r, step, total, gates);
      } else {
        m.cell.grad(dz, gates, total, n);
      }
      m.store(args.out[0].data, row * g.columns(), g.columns(), dz);
      if (g.mode != RnnMode::gru) return;
      // The reset gate multiplies the recurrent part of the candidate.
      RowMath::apply(m.mul, dz + 2 * n, dz + 2 * n, gates + n, n);
      m.store(args.out[1].data, row * g.columns(), g.columns(), dz);
    }

    /// A masked step: its gates have no gradient, and the gradient of h is that of the step before.
    void skip_step(I64 r, I64 row, const float* total) const {
      std::copy_n(total, n, direct + r * n);
      std::fill_n(dz, g.columns(), 0.0F);
      m.store(args.out[0].data, row * g.columns(), g.columns(), dz);
      if (g.mode != RnnMode::gru) return;
      m.store(args.out[1].data, row * g.columns(), g.columns(), dz);
    }

    /// The carry before step `step`.
    const float* carry(I64 r, I64 step) const {
      return step == 0 ? args.in[4].as<float>() + (first + r) * n
                       : args.in[7].as<float>() + row_at(r, step - 1) * n;
    }

    void fused_lstm(I64 r, I64 step) const {
      const I64 row = row_at(r, step), columns = g.columns();
      const void *gates = m.at(args.in[6], row * columns), *dy_row = m.at(args.in[0], row * n);
      void* to = m.at(args.out[0], row * columns);
      if (!m.lstm_stores) {
        gates = m.source.read(args.in[6].data, row * columns, columns, saved);
        dy_row = m.source.read(args.in[0].data, row * n, n, dy);
        to = dz;
      }
      m.lstm_grad({gates,
                   carry(r, step + 1),
                   carry(r, step),
                   dh_of(r),
                   direct + r * n,
                   dy_row,
                   to,
                   dc_of(r)},
                  n);
      if (!m.lstm_stores) m.store(args.out[0].data, row * columns, columns, dz);
    }

    void lstm(I64 r, I64 step, const float* total, const float* gates) const {
      const float *in = gates, *forget = gates + n, *candidate = gates + 2 * n,
                  *out = gates + 3 * n;
      const float *c = carry(r, step + 1), *c_before = carry(r, step);
      float* dc = dc_of(r);
      m.cell.apply(spare, c, n);  // h = out * spare
      RowMath::apply(m.mul, other, total, spare, n);
      m.gate.grad(dz + 3 * n, out, other, n);
      RowMath::apply(m.mul, other, total, out, n);
      m.cell.grad(third, spare, other, n);
      RowMath::apply(m.add, dc, dc, third, n);
      RowMath::apply(m.mul, other, dc, candidate, n);
      m.gate.grad(dz, in, other, n);
      RowMath::apply(m.mul, other, dc, c_before, n);
      m.gate.grad(dz + n, forget, other, n);
      RowMath::apply(m.mul, other, dc, in, n);
      m.cell.grad(dz + 2 * n, candidate, other, n);
      RowMath::apply(m.mul, dc, dc, forget, n);
    }

    void gru(I64 r, I64 step, const float* total, const float* gates) const {
      const float *update = gates, *reset = gates + n, *candidate = gates + 2 * n;
      // h = candidate + update (before - candidate)
      RowMath::apply(m.sub, spare, previous(r, step), candidate, n);
      RowMath::apply(m.mul, spare, spare, total, n);
      m.gate.grad(dz, update, spare, n);
      RowMath::apply(m.mul, direct + r * n, total, update, n);
      RowMath::apply(m.sub, spare, total, direct + r * n, n);
      m.cell.grad(dz + 2 * n, candidate, spare, n);
      if (f.candidate_) return;
      RowMath::apply(m.mul, spare, dz + 2 * n, gates + 3 * n, n);
      m.gate.grad(dz + n, reset, spare, n);
    }

    /// The gradients of the reset gates before the candidate's matmul, and of the operand that they
    /// scale.
    void reset(I64 step) {
      const I64 size = m.source.size;
      f.candidate_->multiply(
          args.out[0].as<std::byte>() + (row_at(0, step) * g.columns() + 2 * n) * size,
          g.steps * g.columns(),
          rows,
          at<std::byte>(args, f.candidate_kernel_),
          at<std::byte>(args, base + f.scratch_),
          doperand_of(0));
      for (I64 r = 0; r < rows; ++r) {
        const I64 row = row_at(r, step);
        if (!f.all_unmasked_ && !args.in[9].as<bool>()[row]) continue;
        const float* operand = previous(r, step);
        if (f.masked_) {
          const float* mask = m.source.read(args.in[8].data, (first + r) * n, n, spare);
          RowMath::apply(m.mul, other, operand, mask, n);
          operand = other;
        }
        float* doperand = doperand_of(r);
        const float* gate = m.source.read(args.in[6].data, (row * 4 + 1) * n, n, saved);
        RowMath::apply(m.mul, third, doperand, operand, n);
        m.gate.grad(dz, gate, third, n);
        m.store(args.out[0].data, row * g.columns() + n, n, dz);
        RowMath::apply(m.mul, doperand, doperand, gate, n);
      }
    }
  };

  // Offsets in the memory of a part.
  I64 dh_ = part_layout_.reserve(z_bytes(matmul_));
  I64 doperand_ = part_layout_.reserve(candidate_ ? z_bytes(*candidate_) : 0);
  I64 direct_ = part_layout_.reserve(packed::k_block_size * g_.units * k_float);
  I64 rows_ = part_layout_.reserve((g_.columns() + 9 * g_.units) * k_float);
};

}  // namespace

Prepared prepare_backward(const NodeView& node, const Capabilities& capabilities) {
  const Backward backward(node, capabilities);
  return launch([backward](const Args& args) { backward.run(args); }, backward.workspace_bytes());
}

}  // namespace halfstep::backend::cpu::recurrent

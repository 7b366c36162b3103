// RNN (graph/ops/recurrent.cc) panel by panel: all steps of 32 samples on one thread. Matmuls
// accumulate in float32, gates are computed in float32 and h is rounded once a step.
// Bit-identical for every number of threads.

#include <algorithm>

#include "backend/cpu/recurrent/cell.h"

namespace halfstep::backend::cpu::recurrent {
namespace {

class Forward : public Pass {
 public:
  Forward(const NodeView& node, const Capabilities& capabilities)
      : Pass(node,
             capabilities,
             graph::ops::rnn_geometry(node.attrs(), node.input(0).shape),
             false,
             5) {}

  void run(const Args& args) const {
    const auto* bias = math_.source.read(args.in[2].data, 0, g_.columns(), at<float>(args, bias_));
    pack(args, args.in[1]);
    panels_.for_each(matmul_, [&](I64 panel, I64 part) {
      Panel{*this, args, bias, panel * packed::k_block_size, panels_.rows(panel), part}.run();
    });
  }

 private:
  /// The forward pass of a panel.
  struct Panel {
    const Forward& f;
    const Args& args;
    const float* bias;
    I64 first, rows, part;

    const RnnGeometry& g = f.g_;
    const RowMath& m = f.math_;
    I64 n = g.units;
    I64 base = f.part_offset(part);
    float* z = at<float>(args, base + f.z_);
    float* x = at<float>(args, base + f.rows_);  // a row of projections
    float *h = x + g.columns(), *scratch = h + n, *before = scratch + n, *spare = before + n;
    std::byte* states = at<std::byte>(args, base + f.states_);

    I64 row_at(I64 r, I64 step) const { return (first + r) * g.steps + g.position(step); }

    void run() {
      if (g.mode == RnnMode::lstm) {
        std::copy_n(
            args.in[4].as<float>() + first * n, rows * n, args.out[1].as<float>() + first * n);
      }
      for (I64 step = 0; step < g.steps; ++step) {
        const auto [operand, stride] = multiply(step);
        if (f.candidate_) reset(operand, stride, step);
        for (I64 r = 0; r < rows; ++r) forward_step(r, step);
      }
    }

    /// The memory of h before a step, and the elements from sample to sample.
    std::pair<const std::byte*, I64> previous(I64 step) const {
      const I64 size = m.source.size;
      if (step == 0) return {args.in[3].as<std::byte>() + first * n * size, n};
      return {args.out[0].as<std::byte>() + row_at(0, step - 1) * n * size, g.steps * n};
    }

    /// z = h R, of the masked h where there is a mask; returns the operand and the elements from
    /// sample to sample.
    std::pair<const std::byte*, I64> multiply(I64 step) {
      auto [from, stride] = previous(step);
      if (f.masked_) {
        for (I64 r = 0; r < rows; ++r) {
          const float* mask = m.source.read(args.in[5].data, (first + r) * n, n, scratch);
          RowMath::apply(m.mul, h, m.source.read(from, r * stride, n, h), mask, n);
          m.store(states, r * n, n, h);
        }
        from = states;
        stride = n;
      }
      if (g.training) {
        const I64 size = m.source.size;
        for (I64 r = 0; r < rows; ++r) {
          std::copy_n(from + r * stride * size,
                      n * size,
                      args.out[4].as<std::byte>() + row_at(r, step) * n * size);
        }
      }
      f.matmul_.multiply(from,
                         stride,
                         rows,
                         at<std::byte>(args, f.kernel_),
                         at<std::byte>(args, base + f.scratch_),
                         z);
      return {from, stride};
    }

    float* candidate_of(I64 r) const {
      return at<float>(args, base + f.candidate_z_) + r * f.candidate_->stride();
    }

    /// Replaces the sums of the gates by the gates, and computes the candidate's sums: the reset
    /// gate times the previous state, multiplied by the candidate's kernel.
    void reset(const std::byte* operand, I64 stride, I64 step) {
      for (I64 r = 0; r < rows; ++r) {
        const I64 row = row_at(r, step);
        float* gates = z + r * f.matmul_.stride();
        RowMath::apply(m.add, gates, gates, bias, 2 * n);
        const float* in = m.source.read(args.in[0].data, row * g.columns(), 2 * n, x);
        RowMath::apply(m.add, gates, gates, in, 2 * n);
        m.gate.apply(gates, gates, 2 * n);
        const float* of_row = m.source.read(operand, r * stride, n, before);
        RowMath::apply(m.mul, scratch, gates + n, of_row, n);
        m.store(states, r * n, n, scratch);
        if (g.training) m.store(args.out[2].data, (row * 4 + 3) * n, n, scratch);
      }
      f.candidate_->multiply(states,
                             n,
                             rows,
                             at<std::byte>(args, f.candidate_kernel_),
                             at<std::byte>(args, base + f.scratch_),
                             candidate_of(0));
    }

    /// Computes the gates and the new state of one sample.
    void forward_step(I64 r, I64 step) {
      const I64 row = row_at(r, step);
      if (!f.all_unmasked_ && !args.in[6].as<bool>()[row]) return skip_step(r, step);
      float* of_row = z + r * f.matmul_.stride();
      if (m.lstm != nullptr) return fused_lstm(of_row, first + r, row);
      const float* in = m.source.read(args.in[0].data, row * g.columns(), g.columns(), x);
      if (!f.candidate_) RowMath::apply(m.add, of_row, of_row, bias, g.columns());
      if (g.mode == RnnMode::lstm) {
        lstm(of_row, in, first + r, row);
      } else if (g.is_gru()) {
        const auto [from, stride] = previous(step);
        if (f.candidate_) {
          RowMath::apply(m.add, scratch, candidate_of(r), bias + 2 * n, n);
        } else {
          reset_after(of_row, in, row);
        }
        gru(of_row, in + 2 * n, m.source.read(from, r * stride, n, before), row);
      } else {
        RowMath::apply(m.add, h, of_row, in, n);
        m.cell.apply(h, h, n);
      }
      m.store(args.out[0].data, row * n, n, h);
    }

    /// Copies the state of one sample over a masked step.
    void skip_step(I64 r, I64 step) const {
      const I64 row = row_at(r, step);
      const auto [from, stride] = previous(step);
      const I64 size = m.source.size;
      std::copy_n(from + r * stride * size, n * size, args.out[0].as<std::byte>() + row * n * size);
      if (!g.training) return;
      const I64 saved = g.saved * n * size;
      std::fill_n(args.out[2].as<std::byte>() + row * saved, saved, std::byte{0});
      if (g.mode != RnnMode::lstm) return;
      std::copy_n(args.out[1].as<float>() + (first + r) * n, n, args.out[3].as<float>() + row * n);
    }

    void fused_lstm(const float* sums, I64 sample, I64 row) const {
      float* c = args.out[1].as<float>() + sample * n;
      float* c_saved = g.training ? args.out[3].as<float>() + row * n : c;
      void *gates = x, *y = h;
      const void* in = m.at(args.in[0], row * 4 * n);
      if (m.lstm_stores) {
        if (g.training) gates = m.at(args.out[2], row * 4 * n);
        y = m.at(args.out[0], row * n);
      } else {
        in = m.source.read(args.in[0].data, row * 4 * n, 4 * n, x);
      }
      m.lstm({sums, bias, in, gates, c, c_saved, y}, n);
      if (m.lstm_stores) return;
      m.store(args.out[0].data, row * n, n, h);
      if (g.training) m.store(args.out[2].data, row * 4 * n, 4 * n, x);
    }

    void lstm(float* gates, const float* in, I64 sample, I64 row) const {
      float* c = args.out[1].as<float>() + sample * n;
      RowMath::apply(m.add, gates, gates, in, 4 * n);
      m.gate.apply(gates, gates, 2 * n);
      m.cell.apply(gates + 2 * n, gates + 2 * n, n);
      m.gate.apply(gates + 3 * n, gates + 3 * n, n);
      RowMath::apply(m.mul, c, c, gates + n, n);
      RowMath::apply(m.mul, scratch, gates, gates + 2 * n, n);
      RowMath::apply(m.add, c, c, scratch, n);
      m.cell.apply(scratch, c, n);
      RowMath::apply(m.mul, h, scratch, gates + 3 * n, n);
      if (!g.training) return;
      m.store(args.out[2].data, row * 4 * n, 4 * n, gates);
      std::copy_n(c, n, args.out[3].as<float>() + row * n);
    }

    /// Replaces the sums of the gates in `r` by the gates. Sets `scratch` to the reset gate times
    /// the candidate's sums, which follow the gates in `r`.
    void reset_after(float* r, const float* in, I64 row) const {
      RowMath::apply(m.add, r, r, in, 2 * n);
      m.gate.apply(r, r, 2 * n);
      RowMath::apply(m.mul, scratch, r + n, r + 2 * n, n);
      if (g.training) m.store(args.out[2].data, (row * 4 + 3) * n, n, r + 2 * n);
    }

    /// h from the gates `r` and the candidate's recurrent part in `scratch`.
    void gru(float* r, const float* in, const float* from, I64 row) const {
      RowMath::apply(m.add, scratch, scratch, in, n);
      m.cell.apply(scratch, scratch, n);
      // h = candidate + update (before - candidate)
      RowMath::apply(m.sub, h, from, scratch, n);
      RowMath::apply(m.mul, h, h, r, n);
      RowMath::apply(m.add, h, h, scratch, n);
      if (!g.training) return;
      m.store(args.out[2].data, row * 4 * n, 2 * n, r);
      m.store(args.out[2].data, (row * 4 + 2) * n, n, scratch);
    }
  };

  // Offsets in the workspace, and in the memory of a part.
  I64 bias_ = shared_layout_.reserve(g_.columns() * k_float);
  I64 z_ = part_layout_.reserve(z_bytes(matmul_));
  I64 candidate_z_ = part_layout_.reserve(candidate_ ? z_bytes(*candidate_) : 0);
  I64 rows_ = part_layout_.reserve((g_.columns() + 4 * g_.units) * k_float);
  I64 states_ = part_layout_.reserve(packed::k_block_size * g_.units * math_.source.size);
};

}  // namespace

Prepared prepare_forward(const NodeView& node, const Capabilities& capabilities) {
  const Forward forward(node, capabilities);
  return launch([forward](const Args& args) { forward.run(args); }, forward.workspace_bytes());
}

}  // namespace halfstep::backend::cpu::recurrent

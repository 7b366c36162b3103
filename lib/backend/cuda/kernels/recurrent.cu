#include "backend/cuda/kernels/recurrent.h"

#include "backend/cuda/kernels/device/recurrent_block.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cuda::kernels {
namespace {

using graph::ops::RnnGeometry;
using graph::ops::RnnMode;

/// The sum of a gate before its activation.
template <class U>
__device__ inline float gate_sum(const U& u, const RnnParams& p, std::int64_t gate) {
  return p.sums[u.in_sums(gate)] + u.read(p.bias, gate * u.units + u.unit) +
         u.read(p.projections, u.in_blocks(u.row, gate, u.g.gates));
}

/// rnn_reset().
struct Reset {
  template <class U>
  __device__ static void compute(const U& u, const RnnParams& p) {
    const float reset = apply(u.step.recurrent_activation, gate_sum(u, p, 1));
    u.write_operand(p.operand, u.in_state, reset * u.operand());
  }
};

/// rnn_gates().
struct Gates {
  template <class U>
  __device__ static void compute(const U& u, const RnnParams& p) {
    const RnnGeometry& g = u.g;
    const Activation cell = u.step.activation, gate = u.step.recurrent_activation;
    const bool takes = u.is_taken();
    const float before = u.before();
    float h = 0;
    float saved[4] = {};
    if (g.mode == RnnMode::lstm) {
      saved[0] = apply(gate, gate_sum(u, p, 0));
      saved[1] = apply(gate, gate_sum(u, p, 1));
      saved[2] = apply(cell, gate_sum(u, p, 2));
      saved[3] = apply(gate, gate_sum(u, p, 3));
      float c = u.step.number == 0 ? u.step.initial_c[u.state] : p.last_c[u.state];
      if (takes) c = c * saved[1] + saved[0] * saved[2];
      p.last_c[u.state] = c;
      if (g.training) u.step.carries[u.in_sequence()] = c;
      h = apply(cell, c) * saved[3];
    } else if (g.is_gru()) {
      const bool reset_before = g.mode == RnnMode::gru_reset_before;
      const float bias = u.read(p.bias, 2 * u.units + u.unit);
      const float sum = reset_before ? p.candidate[u.in_state] : p.sums[u.in_sums(2)];
      saved[0] = apply(gate, gate_sum(u, p, 0));
      saved[1] = apply(gate, gate_sum(u, p, 1));
      const float reset = reset_before ? 1.0F : saved[1];
      const float in = u.read(p.projections, u.in_blocks(u.row, 2, 3));
      saved[2] = apply(cell, reset * (sum + bias) + in);
      saved[3] = reset_before ? u.read_operand(p.operand, u.in_state) : sum + bias;
      h = saved[2] + saved[0] * (before - saved[2]);
    } else {
      h = apply(cell, gate_sum(u, p, 0));
    }
    const float stored = u.rounded(takes ? h : before);
    u.write(u.step.output, u.in_sequence(), stored);
    if (g.training) {
      u.write(p.states, u.in_sequence(), u.operand());
      for (int k = 0; k < 4; ++k) {
        if (k >= g.saved) break;
        u.write(u.step.gates, u.in_blocks(u.row, k, g.saved), takes ? saved[k] : 0.0F);
      }
    }
    u.write_operand(p.operand, u.in_state, stored * u.mask());
  }
};

template <class T, int rows>
__global__ void HALFSTEP_BLOCK_OF(k_block_threads, 1) rnn_kernel(RnnParams p, const T* kernel) {
  HALFSTEP_SHARED(Four, operand_packs, k_narrow<rows> / 4);
  HALFSTEP_SHARED(float, sums, k_wide<rows>);
  HALFSTEP_SHARED(float, candidate, k_narrow<rows>);
  HALFSTEP_SHARED(float, parts, k_wide<rows>);
  auto* const operand = reinterpret_cast<float*>(operand_packs);
  const RnnGeometry g = p.step.geometry;
  const int units = static_cast<int>(g.units), columns = static_cast<int>(g.columns());
  const int of_state = static_cast<int>(g.state_columns());
  const BlockSamples samples(rows, p.step);
  p.operand = operand;
  p.sums = sums;
  p.candidate = candidate;
  p.step.number = 0;
  for (int i = static_cast<int>(thread()); i < rows * units; i += k_block_threads) {
    operand[i] = i < samples.count ? RnnUnit<T, float>(p.step, samples.first + i).operand() : 0.0F;
  }
  for (; p.step.number < g.steps; ++p.step.number) {
    sync_block();
    multiply_state<T, rows>(operand, units, kernel, columns, of_state, sums, false, parts);
    sync_block();
    if (g.mode == RnnMode::gru_reset_before) {
      samples.compute<Reset, T>(p);
      sync_block();
      multiply_state<T, rows>(
          operand, units, kernel + of_state, columns, units, candidate, false, parts);
      sync_block();
    }
    samples.compute<Gates, T>(p);
  }
}

}  // namespace

Activation activation_of(std::string_view op) {
  if (op == functions::Relu::op) return Activation::relu;
  if (op == functions::Sigmoid::op) return Activation::sigmoid;
  if (op == functions::Tanh::op) return Activation::tanh;
  if (op != graph::ops::k_identity) throw LaunchError("no gate computes " + std::string(op));
  return Activation::identity;
}

void rnn_reset(Stream stream, const RnnParams& p) { launch_part<Reset>(stream, p); }

void rnn_gates(Stream stream, const RnnParams& p) { launch_part<Gates>(stream, p); }

void rnn_steps(Stream stream, const RnnParams& p, const void* kernel) {
  dispatch_blocks(
      p.step, [&]<class T, int rows>(Type<T>, std::integral_constant<int, rows>, const Grid& grid) {
        launch(rnn_kernel<T, rows>, grid, stream, p, static_cast<const T*>(kernel));
      });
}

}  // namespace halfstep::backend::cuda::kernels

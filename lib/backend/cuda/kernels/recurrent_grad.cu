#include "backend/cuda/kernels/device/recurrent_block.h"
#include "backend/cuda/kernels/recurrent.h"

namespace halfstep::backend::cuda::kernels {
namespace {

using graph::ops::RnnGeometry;
using graph::ops::RnnMode;

/// dy times the slope where the result is y.
__device__ inline float gradient(Activation f, float y, float dy) {
  using functions::StdMath;
  switch (f) {
    case Activation::relu:
      return functions::ReluGrad::apply<StdMath>(dy, y);
    case Activation::sigmoid:
      return functions::SigmoidGrad::apply<StdMath>(y, dy);
    case Activation::tanh:
      return functions::TanhGrad::apply<StdMath>(y, dy);
    default:
      return dy;
  }
}

/// The gradient of h of the step before the one at which `dh` and `direct` were written.
template <class U>
__device__ inline float carried_gradient(const U& u, const RnnGradParams& p) {
  const float dh = p.dh[u.in_state] * u.mask();
  return p.direct == nullptr ? dh : dh + p.direct[u.state];
}

/// rnn_grad_gates().
struct Gates {
  template <class U>
  __device__ static void compute(const U& u, const RnnGradParams& p) {
    const RnnGeometry& g = u.g;
    const Activation cell = u.step.activation, gate = u.step.recurrent_activation;
    const bool takes = u.is_taken(), is_last = u.step.number == g.steps - 1;
    float total = u.read(p.dy, u.in_sequence());
    if (!is_last) total += carried_gradient(u, p);
    const auto saved = [&](std::int64_t k) {
      return u.read(u.step.gates, u.in_blocks(u.row, k, g.saved));
    };
    float dz[4] = {};
    float direct = 0, of_candidate = 0;  // the latter: of a gru's recurrent candidate
    if (g.mode == RnnMode::lstm) {
      float dc = is_last ? p.dlast_c[u.state] : p.dinitial_c[u.state];
      if (takes) {
        const float in = saved(0), forget = saved(1), candidate = saved(2), out = saved(3);
        const float c_before = u.step.number == 0
                                   ? u.step.initial_c[u.state]
                                   : u.step.carries[u.row_of(u.step.number - 1) * u.units + u.unit];
        const float y = apply(cell, u.step.carries[u.in_sequence()]);
        dc += gradient(cell, y, total * out);
        dz[0] = gradient(gate, in, dc * candidate);
        dz[1] = gradient(gate, forget, dc * c_before);
        dz[2] = gradient(cell, candidate, dc * in);
        dz[3] = gradient(gate, out, total * y);
        dc *= forget;
      }
      p.dinitial_c[u.state] = dc;
    } else if (takes && g.is_gru()) {
      const float update = saved(0), reset = saved(1), candidate = saved(2);
      direct = total * update;
      dz[0] = gradient(gate, update, (u.before() - candidate) * total);
      dz[2] = gradient(cell, candidate, total - direct);
      if (g.mode == RnnMode::gru) dz[1] = gradient(gate, reset, dz[2] * saved(3));
      of_candidate = dz[2] * reset;
    } else if (takes) {
      dz[0] = gradient(cell, u.read(u.step.output, u.in_sequence()), total);
    }
    for (int k = 0; k < 4; ++k) {
      if (k >= g.gates) break;
      const std::int64_t at = u.in_blocks(u.row, k, g.gates);
      u.write(p.dprojections, at, dz[k]);
      const float dr = g.mode == RnnMode::gru && k == 2 ? of_candidate : dz[k];
      if (g.mode == RnnMode::gru) u.write(p.drecurrent, at, dr);
      if (k * u.units < g.state_columns()) {
        u.write_operand(p.operand, u.in_sums(k), dr);
      } else {
        u.write_operand(p.candidate_operand, u.in_state, dr);
      }
    }
    if (p.direct != nullptr) p.direct[u.state] = takes ? direct : total;
  }
};

/// rnn_grad_reset().
struct Reset {
  template <class U>
  __device__ static void compute(const U& u, const RnnGradParams& p) {
    const float reset = u.read(u.step.gates, u.in_blocks(u.row, 1, u.g.saved));
    const float dz = gradient(u.step.recurrent_activation, reset, p.dh[u.in_state] * u.operand());
    u.write(p.dprojections, u.in_blocks(u.row, 1, u.g.gates), dz);
    u.write_operand(p.operand, u.in_sums(1), dz);
    p.dh[u.in_state] *= reset;
  }
};

/// rnn_grad_finish().
struct Finish {
  template <class U>
  __device__ static void compute(const U& u, const RnnGradParams& p) {
    u.write(p.dinitial_h, u.state, carried_gradient(u, p));
  }
};

template <class T, int rows>
__global__ void HALFSTEP_BLOCK_OF(k_block_threads, 1)
    rnn_grad_kernel(RnnGradParams p, const T* kernel) {
  HALFSTEP_SHARED(Four, operand_packs, k_wide<rows> / 4);
  HALFSTEP_SHARED(Four, candidate_packs, k_narrow<rows> / 4);
  HALFSTEP_SHARED(float, dh, k_narrow<rows>);
  HALFSTEP_SHARED(float, parts, k_wide<rows>);
  auto* const operand = reinterpret_cast<float*>(operand_packs);
  auto* const candidate = reinterpret_cast<float*>(candidate_packs);
  const RnnGeometry g = p.step.geometry;
  const int units = static_cast<int>(g.units), of_state = static_cast<int>(g.state_columns());
  const bool has_candidate = g.mode == RnnMode::gru_reset_before;
  const BlockSamples samples(rows, p.step);
  p.operand = operand;
  p.candidate_operand = candidate;
  p.dh = dh;
  // Rows without a sample.
  for (int i = static_cast<int>(thread()); i < rows * of_state; i += k_block_threads)
    operand[i] = 0;
  for (int i = static_cast<int>(thread()); i < rows * units; i += k_block_threads) candidate[i] = 0;
  sync_block();
  for (p.step.number = g.steps - 1; p.step.number >= 0; --p.step.number) {
    samples.compute<Gates, T>(p);
    sync_block();
    if (has_candidate) {
      multiply_state<T, rows>(
          candidate, units, kernel + of_state * units, units, units, dh, false, parts);
      sync_block();
      samples.compute<Reset, T>(p);
      sync_block();
    }
    multiply_state<T, rows>(operand, of_state, kernel, units, units, dh, has_candidate, parts);
    sync_block();
  }
  p.step.number = 0;
  samples.compute<Finish, T>(p);
}

}  // namespace

void rnn_grad_gates(Stream stream, const RnnGradParams& p) { launch_part<Gates>(stream, p); }

void rnn_grad_reset(Stream stream, const RnnGradParams& p) { launch_part<Reset>(stream, p); }

void rnn_grad_finish(Stream stream, const RnnGradParams& p) { launch_part<Finish>(stream, p); }

void rnn_grad_steps(Stream stream, const RnnGradParams& p, const void* transposed) {
  dispatch_blocks(
      p.step, [&]<class T, int rows>(Type<T>, std::integral_constant<int, rows>, const Grid& grid) {
        launch(rnn_grad_kernel<T, rows>, grid, stream, p, static_cast<const T*>(transposed));
      });
}

}  // namespace halfstep::backend::cuda::kernels

#include "backend/cuda/kernels/recurrent.h"

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/element.h"
#include "backend/functions/activation.h"
#include "backend/functions/elementary.h"
#include "backend/functions/std_math.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cuda::kernels {
namespace {

using functions::StdMath;
using graph::ops::RnnMode;

__device__ inline float apply(Activation f, float x) {
  switch (f) {
    case Activation::relu:
      return functions::Relu::apply<StdMath>(x);
    case Activation::sigmoid:
      return functions::Sigmoid::apply<StdMath>(x);
    case Activation::tanh:
      return functions::Tanh::apply<StdMath>(x);
    default:
      return x;
  }
}

/// dy times the slope where the result is y.
__device__ inline float gradient(Activation f, float y, float dy) {
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

/// A unit of a sample at a step.
template <class T>
struct Unit {
  const RnnStep& step;
  std::int64_t units, state, sample, unit, row;

  /// `at`: the unit's number among the states.
  __device__ Unit(const RnnStep& s, std::int64_t at) : step(s), units(s.geometry.units), state(at) {
    const Divided place = divide(at, units);
    sample = place.quotient;
    unit = place.remainder;
    row = row_of(s.number);
  }
  __device__ std::int64_t row_of(std::int64_t number) const {
    return sample * step.geometry.steps + step.geometry.position(number);
  }
  /// The unit's element of block `block` in a row of `blocks` blocks of units.
  __device__ std::int64_t in_blocks(std::int64_t of,
                                    std::int64_t block,
                                    std::int64_t blocks) const {
    return (of * blocks + block) * units + unit;
  }
  __device__ std::int64_t in_sequence() const { return row * units + unit; }
  __device__ static float read(const void* from, std::int64_t i) {
    return load(static_cast<const T*>(from)[i]);
  }
  __device__ static void write(void* to, std::int64_t i, float x) {
    static_cast<T*>(to)[i] = store<T>(x);
  }
  __device__ bool is_taken() const { return step.taken == nullptr || step.taken[row]; }
  __device__ float mask() const { return step.mask == nullptr ? 1.0F : read(step.mask, state); }
  /// h before the step.
  __device__ float before() const {
    return step.number == 0 ? read(step.initial_h, state)
                            : read(step.output, row_of(step.number - 1) * units + unit);
  }
  /// The operand of the step's matmul.
  __device__ float operand() const { return load(store<T>(before() * mask())); }
};

/// The sum of a gate before its activation.
template <class T>
__device__ inline float gate_sum(const RnnParams& p, const Unit<T>& u, std::int64_t gate) {
  const graph::ops::RnnGeometry& g = p.step.geometry;
  const float sum = p.sums[u.sample * g.state_columns() + gate * u.units + u.unit];
  return sum + u.read(p.bias, gate * u.units + u.unit) +
         u.read(p.projections, u.in_blocks(u.row, gate, g.gates));
}

template <class T>
__global__ void rnn_reset_kernel(RnnParams p) {
  const std::int64_t count = p.step.geometry.batch * p.step.geometry.units;
  for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    const Unit<T> u(p.step, i);
    u.write(p.operand, i, apply(p.step.recurrent_activation, gate_sum(p, u, 1)) * u.operand());
  }
}

template <class T>
__global__ void rnn_gates_kernel(RnnParams p) {
  const graph::ops::RnnGeometry& g = p.step.geometry;
  const Activation cell = p.step.activation, gate = p.step.recurrent_activation;
  const std::int64_t count = g.batch * g.units;
  for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    const Unit<T> u(p.step, i);
    const bool takes = u.is_taken();
    const float before = u.before();
    float h = 0;
    float saved[4] = {};
    if (g.mode == RnnMode::lstm) {
      saved[0] = apply(gate, gate_sum(p, u, 0));
      saved[1] = apply(gate, gate_sum(p, u, 1));
      saved[2] = apply(cell, gate_sum(p, u, 2));
      saved[3] = apply(gate, gate_sum(p, u, 3));
      float c = p.step.number == 0 ? p.step.initial_c[i] : p.last_c[i];
      if (takes) c = c * saved[1] + saved[0] * saved[2];
      p.last_c[i] = c;
      if (g.training) p.step.carries[u.in_sequence()] = c;
      h = apply(cell, c) * saved[3];
    } else if (g.is_gru()) {
      const bool reset_before = g.mode == RnnMode::gru_reset_before;
      const float bias = u.read(p.bias, 2 * u.units + u.unit);
      const float sum = reset_before ? p.candidate[i] : p.sums[u.in_blocks(u.sample, 2, 3)];
      saved[0] = apply(gate, gate_sum(p, u, 0));
      saved[1] = apply(gate, gate_sum(p, u, 1));
      const float reset = reset_before ? 1.0F : saved[1];
      const float in = u.read(p.projections, u.in_blocks(u.row, 2, 3));
      saved[2] = apply(cell, reset * (sum + bias) + in);
      saved[3] = reset_before ? u.read(p.operand, i) : sum + bias;
      h = saved[2] + saved[0] * (before - saved[2]);
    } else {
      h = apply(cell, gate_sum(p, u, 0));
    }
    const float stored = load(store<T>(takes ? h : before));
    u.write(p.step.output, u.in_sequence(), stored);
    if (g.training) {
      u.write(p.states, u.in_sequence(), u.operand());
      for (int k = 0; k < 4; ++k) {
        if (k >= g.saved) break;
        u.write(p.step.gates, u.in_blocks(u.row, k, g.saved), takes ? saved[k] : 0.0F);
      }
    }
    u.write(p.operand, i, stored * u.mask());
  }
}

/// The gradient of h of the step before the one at which `dh` and `direct` were written.
template <class T>
__device__ inline float carried_gradient(const RnnGradParams& p, const Unit<T>& u) {
  const float dh = p.dh[u.state] * u.mask();
  return p.direct == nullptr ? dh : dh + p.direct[u.state];
}

template <class T>
__global__ void rnn_grad_gates_kernel(RnnGradParams p) {
  const graph::ops::RnnGeometry& g = p.step.geometry;
  const Activation cell = p.step.activation, gate = p.step.recurrent_activation;
  const std::int64_t count = g.batch * g.units;
  for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    const Unit<T> u(p.step, i);
    const bool takes = u.is_taken(), is_last = p.step.number == g.steps - 1;
    float total = u.read(p.dy, u.in_sequence());
    if (!is_last) total += carried_gradient(p, u);
    const auto saved = [&](std::int64_t k) {
      return u.read(p.step.gates, u.in_blocks(u.row, k, g.saved));
    };
    float dz[4] = {};
    float direct = 0, of_candidate = 0;  // the latter: of a gru's recurrent candidate
    if (g.mode == RnnMode::lstm) {
      float dc = is_last ? p.dlast_c[i] : p.dinitial_c[i];
      if (takes) {
        const float in = saved(0), forget = saved(1), candidate = saved(2), out = saved(3);
        const float c_before = p.step.number == 0
                                   ? p.step.initial_c[i]
                                   : p.step.carries[u.row_of(p.step.number - 1) * u.units + u.unit];
        const float y = apply(cell, p.step.carries[u.in_sequence()]);
        dc += gradient(cell, y, total * out);
        dz[0] = gradient(gate, in, dc * candidate);
        dz[1] = gradient(gate, forget, dc * c_before);
        dz[2] = gradient(cell, candidate, dc * in);
        dz[3] = gradient(gate, out, total * y);
        dc *= forget;
      }
      p.dinitial_c[i] = dc;
    } else if (takes && g.is_gru()) {
      const float update = saved(0), reset = saved(1), candidate = saved(2);
      direct = total * update;
      dz[0] = gradient(gate, update, (u.before() - candidate) * total);
      dz[2] = gradient(cell, candidate, total - direct);
      if (g.mode == RnnMode::gru) dz[1] = gradient(gate, reset, dz[2] * saved(3));
      of_candidate = dz[2] * reset;
    } else if (takes) {
      dz[0] = gradient(cell, u.read(p.step.output, u.in_sequence()), total);
    }
    for (int k = 0; k < 4; ++k) {
      if (k >= g.gates) break;
      const std::int64_t at = u.in_blocks(u.row, k, g.gates);
      u.write(p.dprojections, at, dz[k]);
      const float dr = g.mode == RnnMode::gru && k == 2 ? of_candidate : dz[k];
      if (g.mode == RnnMode::gru) u.write(p.drecurrent, at, dr);
      if (k * u.units < g.state_columns()) {
        u.write(p.operand, u.sample * g.state_columns() + k * u.units + u.unit, dr);
      } else {
        u.write(p.candidate_operand, i, dr);
      }
    }
    if (p.direct != nullptr) p.direct[i] = takes ? direct : total;
  }
}

template <class T>
__global__ void rnn_grad_reset_kernel(RnnGradParams p) {
  const graph::ops::RnnGeometry& g = p.step.geometry;
  const std::int64_t count = g.batch * g.units;
  for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    const Unit<T> u(p.step, i);
    const float reset = u.read(p.step.gates, u.in_blocks(u.row, 1, g.saved));
    const float dz = gradient(p.step.recurrent_activation, reset, p.dh[i] * u.operand());
    u.write(p.dprojections, u.in_blocks(u.row, 1, g.gates), dz);
    u.write(p.operand, u.in_blocks(u.sample, 1, 2), dz);
    p.dh[i] *= reset;
  }
}

template <class T>
__global__ void rnn_grad_finish_kernel(RnnGradParams p) {
  const std::int64_t count = p.step.geometry.batch * p.step.geometry.units;
  for (std::int64_t i = thread_of_grid(); i < count; i += threads_of_grid()) {
    const Unit<T> u(p.step, i);
    u.write(p.dinitial_h, i, carried_gradient(p, u));
  }
}

/// One thread for each unit of each sample, of a kernel for each dtype.
template <class Params, class Kernel>
void launch_units(Stream stream, const Params& p, const Kernel& kernel_of) {
  const graph::ops::RnnGeometry& g = p.step.geometry;
  dispatch_product(p.step.dtype, [&]<class T>(Type<T> type) {
    launch(kernel_of(type), grid_of(g.batch * g.units), stream, p);
  });
}

}  // namespace

Activation activation_of(std::string_view op) {
  if (op == functions::Relu::op) return Activation::relu;
  if (op == functions::Sigmoid::op) return Activation::sigmoid;
  if (op == functions::Tanh::op) return Activation::tanh;
  if (op != graph::ops::k_identity) throw LaunchError("no gate computes " + std::string(op));
  return Activation::identity;
}

void rnn_reset(Stream stream, const RnnParams& p) {
  launch_units(stream, p, []<class T>(Type<T>) { return rnn_reset_kernel<T>; });
}

void rnn_gates(Stream stream, const RnnParams& p) {
  launch_units(stream, p, []<class T>(Type<T>) { return rnn_gates_kernel<T>; });
}

void rnn_grad_gates(Stream stream, const RnnGradParams& p) {
  launch_units(stream, p, []<class T>(Type<T>) { return rnn_grad_gates_kernel<T>; });
}

void rnn_grad_reset(Stream stream, const RnnGradParams& p) {
  launch_units(stream, p, []<class T>(Type<T>) { return rnn_grad_reset_kernel<T>; });
}

void rnn_grad_finish(Stream stream, const RnnGradParams& p) {
  launch_units(stream, p, []<class T>(Type<T>) { return rnn_grad_finish_kernel<T>; });
}

}  // namespace halfstep::backend::cuda::kernels

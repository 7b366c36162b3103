#pragma once
// A unit of a sample at a step of RNN or RNNGrad, for kernels of a part of one step and for those
// of all steps.

#include "backend/cuda/kernels/device/element.h"
#include "backend/cuda/kernels/recurrent.h"
#include "backend/functions/activation.h"
#include "backend/functions/elementary.h"
#include "backend/functions/std_math.h"

namespace halfstep::backend::cuda::kernels {

__device__ inline float apply(Activation f, float x) {
  using functions::StdMath;
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

/// A unit of a sample at a step. T: the dtype of the node; Operand: that in which the operands of
/// matmuls are stored, whose values are those of T.
template <class T, class Operand>
struct RnnUnit {
  const RnnStep& step;
  const graph::ops::RnnGeometry& g;
  std::int64_t units, state, sample, unit, row;
  std::int64_t in_state;   ///< of the operands and sums, which begin with sample `step.first`
  std::int64_t of_sample;  ///< the sample's number there

  /// `at`: the unit's number among the states.
  __device__ RnnUnit(const RnnStep& s, std::int64_t at)
      : step(s),
        g(s.geometry),
        units(g.units),
        state(at),
        in_state(at - s.first * units),
        of_sample(0) {
    const Divided index = divide(at, units);
    sample = index.quotient;
    unit = index.remainder;
    row = row_of(s.number);
    of_sample = sample - s.first;
  }
  __device__ std::int64_t row_of(std::int64_t number) const {
    return sample * g.steps + g.position(number);
  }
  /// The unit's element of block `block` in a row of `blocks` blocks of units.
  __device__ std::int64_t in_blocks(std::int64_t of,
                                    std::int64_t block,
                                    std::int64_t blocks) const {
    return (of * blocks + block) * units + unit;
  }
  __device__ std::int64_t in_sequence() const { return row * units + unit; }
  /// Of column block `block` in the rows that the state is multiplied with.
  __device__ std::int64_t in_sums(std::int64_t block) const {
    return of_sample * g.state_columns() + block * units + unit;
  }
  __device__ static float rounded(float x) { return load(store<T>(x)); }
  __device__ static float read(const void* from, std::int64_t i) {
    return load(static_cast<const T*>(from)[i]);
  }
  __device__ static void write(void* to, std::int64_t i, float x) {
    static_cast<T*>(to)[i] = store<T>(x);
  }
  __device__ static float read_operand(const void* from, std::int64_t i) {
    return load(static_cast<const Operand*>(from)[i]);
  }
  __device__ static void write_operand(void* to, std::int64_t i, float x) {
    static_cast<Operand*>(to)[i] = store<Operand>(rounded(x));
  }
  __device__ bool is_taken() const { return step.taken == nullptr || step.taken[row]; }
  __device__ float mask() const { return step.mask == nullptr ? 1.0F : read(step.mask, state); }
  /// h before the step.
  __device__ float before() const {
    return step.number == 0 ? read(step.initial_h, state)
                            : read(step.output, row_of(step.number - 1) * units + unit);
  }
  /// The operand of the step's matmul.
  __device__ float operand() const { return rounded(before() * mask()); }
};

}  // namespace halfstep::backend::cuda::kernels

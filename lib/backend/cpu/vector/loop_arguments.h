#pragma once
// The conversions of runs, the loops of batch normalization, and the arguments of loops over
// channels, rows, windows and scores (loops.h).

#include <cstdint>

namespace halfstep::backend::cpu::vector {

using Widen = void (*)(float* y, const void* x, std::int64_t n);
using Narrow = void (*)(void* y, const float* x, std::int64_t n);
/// Narrowed and widened again; y may be x.
using Round = void (*)(float* y, const float* x, std::int64_t n);
/// y = x * factor; y may be x of float32.
using Scale = void (*)(float* y, const void* x, float factor, std::int64_t n);

/// A batch normalization per channel: y = (x - mean) * gain + offset.
struct NormChannels {
  const float *mean, *gain, *offset;
  float least = 0;  ///< y rounds to a value above 0 exactly if it is above this
};

/// Loops over rows of channels, whose untyped values are in one dtype; see isa/norm.inc.
struct NormLoops {
  bool wide_results;  ///< untyped results are float32
  void (*moments)(float* s1,
                  float* s2,
                  const void* x,
                  const float* shift,
                  std::int64_t rows,
                  std::int64_t columns);
  // [0] without, [1] with a ReLU after the normalization.
  void (*comoments[2])(float* s1,
                       float* s2,
                       const void* dy,
                       const void* x,
                       const NormChannels& p,
                       std::int64_t rows,
                       std::int64_t columns);
  // [2]: `side` is added before the ReLU.
  void (*normalize[3])(void* z,
                       const void* x,
                       const void* side,
                       const NormChannels& p,
                       std::int64_t rows,
                       std::int64_t columns);
  void (*normalize_grad[2])(void* dx,
                            const void* dy,
                            const void* x,
                            const NormChannels& p,
                            const float* a,
                            const float* b,
                            std::int64_t rows,
                            std::int64_t columns);
};

/// A run of a row in layer normalization: y = (x - mean) * inverse * gamma + beta, and its
/// gradient dx = inverse * (dy * gamma - constant - (x - mean) * slope).
struct NormRow {
  const float* gamma;
  const float* beta;
  float mean, inverse;
  float constant = 0, slope = 0;
};

/// Rows of a layer normalization, whose moments are stored, and of its gradient, which adds to
/// dgamma and dbeta. Untyped rows are in the dtype of the op.
struct LayerNormRows {
  const void* x;
  const float *gamma, *beta;
  double epsilon;
  void* y;
  float *mean, *inverse;
};
struct LayerNormGradRows {
  const void *dy, *x;
  const float *gamma, *mean, *inverse;
  void* dx;
  float *dgamma, *dbeta;
};

/// Windows of `taps` cells each. Cell t of window j has `channels` values at x + cells[t] + j *
/// step, and its result is at y + j * channels.
struct PoolWindows {
  const std::int64_t* cells;
  std::int64_t taps;
  std::int64_t channels;
  std::int64_t count;
  std::int64_t step;
};

/// Scores of attention in blocks of 32 x 32. Row r sees columns below first + r * step or, in
/// transposed blocks, those from there on, and none from `columns` on. The keys with a 0 in `taken`
/// are not seen at all: columns, up to the end of the last block, or rows where they are
/// transposed.
struct ScoreBlocks {
  float* scores;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t first, step;
  float scale;
  const float* taken;  ///< null: all of them
};

/// One sample's step of an lstm with tanh and sigmoid. Rows of gates: input, forget, candidate and
/// output, `n` of each; all others have n values. Untyped rows are in the dtype of the op.
struct LstmRow {
  const float *sums, *bias;
  const void* in;  ///< the sums of the gates are sums + bias + in
  void* gates;
  float *c, *c_saved;  ///< the carry, in place, and a copy of the new one; may be c
  void* h;
};

/// The same step backwards: the gradient of h is dh + direct + dy.
struct LstmGradRow {
  const void* gates;
  const float *c, *c_before;  ///< c: the new carry
  const float *dh, *direct;
  const void* dy;
  void* dz;   ///< of the sums of the gates
  float* dc;  ///< of the carry, in place: of the new one, then of the one before
};

}  // namespace halfstep::backend::cpu::vector

#pragma once
// Types of the conversions of runs and of the loops of batch normalization, and arguments of loops
// over channels, rows, windows and scores (loops.h).

#include <cstdint>

namespace halfstep::backend::cpu::vector {

using Widen = void (*)(float* y, const void* x, std::int64_t n);
using Narrow = void (*)(void* y, const float* x, std::int64_t n);
/// Rounds x to a 16-bit dtype; y may be x.
using Round = void (*)(float* y, const float* x, std::int64_t n);
/// y = x * factor; y may be x if x is float32.
using Scale = void (*)(float* y, const void* x, float factor, std::int64_t n);

/// A batch normalization per channel: y = (x - mean) * gain + offset.
struct NormChannels {
  const float *mean, *gain, *offset;
  float relu_threshold = 0;  ///< y rounds to a value above 0 if and only if y is above this
};

/// Loops over rows of channels. Untyped values have the dtype of the table; see isa/norm.inc.
struct NormLoops {
  bool float32_results;  ///< untyped results are float32
  void (*moments)(float* s1,
                  float* s2,
                  const void* x,
                  const float* shift,
                  std::int64_t rows,
                  std::int64_t columns);
  // [whether a ReLU follows the normalization]
  void (*comoments[2])(float* s1,
                       float* s2,
                       const void* dy,
                       const void* x,
                       const NormChannels& p,
                       std::int64_t rows,
                       std::int64_t columns);
  // [no activation, ReLU, add `side` and ReLU]
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

/// A run of a row in layer normalization: y = (x - mean) * inverse * gamma + beta, with the
/// gradient dx = inverse * (dy * gamma - constant - (x - mean) * slope).
struct NormRow {
  const float* gamma;
  const float* beta;
  float mean, inverse;
  float constant = 0, slope = 0;
};

/// Rows of a layer normalization, which stores their moments, and of its gradient, which adds to
/// dgamma and dbeta. Untyped rows have the dtype of the op.
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

/// `count` pooling windows of `taps` cells. Cell t of window j has `channels` values at
/// x + cells[t] + j * step, and the result of window j is at y + j * channels.
struct PoolWindows {
  const std::int64_t* cells;
  std::int64_t taps;
  std::int64_t channels;
  std::int64_t count;
  std::int64_t step;
};

/// Scores of attention in blocks of 32 x 32. Row r sees columns below first + r * step (in
/// transposed blocks: from there on), and none from `columns` on. `key_mask` has a 0 for each
/// masked key, and one value per column up to the end of the last block (in transposed blocks: per
/// row).
struct ScoreBlocks {
  float* scores;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t first, step;
  float scale;
  const float* key_mask;  ///< null: no key is masked
};

/// A step of an lstm with tanh and sigmoid for one sample. Rows of gates hold n values of each of
/// input, forget, candidate and output gate; other rows hold n values. Untyped rows have the dtype
/// of the op.
struct LstmRow {
  const float *recurrent, *bias;
  const void* in;  ///< gates before activation: recurrent + bias + in
  void* gates;
  float *c, *c_saved;  ///< the carry, updated in place, and a copy of the new one; c_saved may be c
  void* h;
};

/// The backward pass of such a step: the gradient of h is dh + direct + dy.
struct LstmGradRow {
  const void* gates;
  const float *c, *c_before;  ///< c: the new carry
  const float *dh, *direct;
  const void* dy;
  void* dz;   ///< gradient of the gates before activation
  float* dc;  ///< gradient of the new carry, replaced by that of the carry before
};

}  // namespace halfstep::backend::cpu::vector

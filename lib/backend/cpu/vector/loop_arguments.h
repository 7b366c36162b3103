#pragma once
// The arguments of loops over channels, rows, windows and scores (loops.h).

#include <cstdint>

namespace halfstep::backend::cpu::vector {

/// A batch normalization per channel: y = (x - mean) * gain + offset.
struct NormChannels {
  const float *mean, *gain, *offset;
  float least = 0;  ///< y rounds to a value above 0 exactly if it is above this
};

/// A run of a row in layer normalization: y = (x - mean) * inverse * gamma + beta, and its
/// gradient dx = inverse * (dy * gamma - constant - (x - mean) * slope).
struct NormRow {
  const float* gamma;
  const float* beta;
  float mean, inverse;
  float constant = 0, slope = 0;
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
/// output, `n` of each; all others have n values.
struct LstmRow {
  const float *sums, *bias, *in;  ///< the sums of the gates are sums + bias + in
  float* gates;                   ///< may be `sums`
  float* c;                       ///< the carry, in place
  float *c_saved, *h;             ///< c_saved: a copy of the new carry; may be c
};

/// The same step backwards: the gradient of h is dh + direct + dy.
struct LstmGradRow {
  const float *gates, *c, *c_before;  ///< c: the new carry
  const float *dh, *direct, *dy;
  float* dz;  ///< of the sums of the gates
  float* dc;  ///< of the carry, in place: of the new one, then of the one before
};

}  // namespace halfstep::backend::cpu::vector

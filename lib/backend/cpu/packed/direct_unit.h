#pragma once
// Convolutions of few input channels as multiplications and additions of float32 numbers.
//
// Included by files that are compiled for an instruction set: plain data only (see blocks.h).

#include <cstdint>

namespace halfstep::backend::cpu::packed {

/// A row of outputs. Output j reads x[j * apart + offsets[t]] for each tap (and channel) t.
struct DirectRow {
  const float* x;
  std::int64_t apart;
  const std::int32_t* offsets;
  std::int64_t taps;
  const float* filter;  ///< [block of 16 outputs][tap][16]
  const float* bias;    ///< padded to a multiple of 16
  std::uint16_t* y;
  std::int64_t pixels;
  std::int64_t outputs;
};

/// sums[block][t] += the sum over rows i and pixels j of x[i * row_apart + j * apart + offsets[t]]
/// times dy[block][i][j].
struct DirectFilterRows {
  const float* x;
  std::int64_t apart, row_apart;
  const std::int32_t* offsets;
  std::int64_t taps;
  const float* dy;  ///< [block of 16 outputs][row][pixel][16]
  std::int64_t rows, pixels;
  std::int64_t blocks;
  float* sums;  ///< [block of 16 outputs][tap][16]
};

struct DirectUnit {
  /// [bfloat16, float16, bfloat16 by AVX512-BF16, which takes denormal results for zero]
  void (*row[3])(const DirectRow& row);
  void (*widen[2])(float* to, const std::uint16_t* from, std::int64_t n);
  /// Pixels of `outputs` numbers to [block of 16][pixel][16], padded with zeros.
  void (*widen_blocks[2])(float* to,
                          const std::uint16_t* from,
                          std::int64_t pixels,
                          std::int64_t outputs);
  void (*filter_rows)(const DirectFilterRows& rows);
};

extern const DirectUnit k_avx512_direct_unit;

}  // namespace halfstep::backend::cpu::packed

#pragma once
// Micro-kernels of convolutions with at most 32 terms: 16-bit operands widened to float32,
// multiplied and accumulated in float32 registers of 16 outputs.
//
// Included by files that are compiled for an instruction set: plain data only (see blocks.h).

#include <cstdint>

namespace halfstep::backend::cpu::packed {

/// A row of y: y[j][o] = bias[o] + sum over t of x[j * pixel_stride + offsets[t]] * filter[t][o],
/// rounded once. A term t is a tap and an input channel.
struct DirectRowArgs {
  const float* x;
  std::int64_t pixel_stride;  ///< floats from one output's window to the next one's
  const std::int32_t* offsets;
  std::int64_t terms;
  const float* filter;  ///< [block of 16 outputs][term][16]
  const float* bias;    ///< padded to a multiple of 16
  std::uint16_t* y;     ///< [pixels][outputs]
  std::int64_t pixels;
  std::int64_t outputs;
};

/// accumulators[block][t] += sum over rows i and pixels j of
/// x[i * row_stride + j * pixel_stride + offsets[t]] * dy[block][i][j].
struct DirectFilterGradientArgs {
  const float* x;
  std::int64_t pixel_stride, row_stride;  ///< floats
  const std::int32_t* offsets;
  std::int64_t terms;
  const float* dy;  ///< [block of 16 outputs][row][pixel][16]
  std::int64_t rows, pixels;
  std::int64_t blocks;
  float* accumulators;  ///< [block of 16 outputs][term][16]
};

struct DirectMicroKernels {
  /// [bfloat16, float16, bfloat16 by AVX512-BF16, which flushes subnormal results to zero]
  void (*row[3])(const DirectRowArgs& args);

  // [bfloat16, float16]
  void (*widen[2])(float* to, const std::uint16_t* from, std::int64_t n);
  /// Pixels of `outputs` values to [block of 16 outputs][pixel][16], padded with zeros.
  void (*widen_blocks[2])(float* to,
                          const std::uint16_t* from,
                          std::int64_t pixels,
                          std::int64_t outputs);

  void (*filter_gradient)(const DirectFilterGradientArgs& args);
};

extern const DirectMicroKernels k_avx512_direct_micro_kernels;

}  // namespace halfstep::backend::cpu::packed

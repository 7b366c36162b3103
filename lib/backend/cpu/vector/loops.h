#pragma once
// The inner loops of the vector kernels: one table per instruction set, compiled from the same
// source (isa/*.inc) with bit-identical results. They process runs of float32; 16-bit values are
// widened into a run that stays in the L1 cache, and narrowed from it.
//
// Files compiled for an instruction set include only this header with loop_arguments.h, the headers
// of backend/functions and intrinsics: the linker could keep their copy of a shared inline function
// or template for the whole program. The scalar functions are templates over a type in the unnamed
// namespace of each of those files, so their copies are local.

#include <cstdint>

#include "backend/capabilities.h"
#include "backend/cpu/vector/loop_arguments.h"
#include "backend/functions/update.h"

namespace halfstep::backend::cpu::vector {

/// Maximum number of elements of a run.
inline constexpr std::int64_t k_run = 1024;

/// An elementwise loop: y[i] = f(in[0][i], in[1][i], ..., a); y may be one of the inputs.
using Map = void (*)(float* y, const float* const* in, std::int64_t n, float a);
struct MapLoop {
  const char* op;
  int inputs;
  Map loop;
  const char* attribute = nullptr;  ///< name of the attribute for `a`
  bool exact = false;               ///< the result needs no rounding: see functions/function.h
  bool costly = false;              ///< see functions/function.h
  Map rounded[2] = {};              ///< with the result rounded to float16 and to bfloat16
};

/// A reduction of a run to a scalar, and of rows to one value per column.
struct Reduction {
  const char* op;
  float (*run)(const float* x, std::int64_t n);
  void (*rows)(float* acc, const float* x, std::int64_t rows, std::int64_t columns);
  float identity;
};

/// An optimizer update of a run: s: variable and slots; g: gradient.
using Update = void (*)(float* const* s,
                        const float* g,
                        std::int64_t n,
                        const functions::UpdateScalars<float>& scalars);
struct UpdateLoop {
  const char* op;
  const char* flag;  ///< name of the attribute that selects a loop, or null
  Update loops[2];   ///< [false, true]
};

/// std::span without inline functions of another header.
template <class Entry>
struct Entries {
  const Entry* first;
  std::uint64_t count;

  const Entry* begin() const { return first; }
  const Entry* end() const { return first + count; }
};

struct Loops {
  Widen widen_float16, widen_bfloat16, widen_uint8 /* and bool */, widen_int32;
  Narrow narrow_float16, narrow_bfloat16, narrow_uint8, narrow_bool, narrow_int32;
  Round round_float16, round_bfloat16;
  Scale scale_float32, scale_float16, scale_bfloat16;

  Entries<MapLoop> maps;
  Entries<Reduction> reductions;
  Entries<UpdateLoop> updates;

  // Rows of logits; see isa/softmax.inc.
  void (*softmax)(float* y, const float* x, std::int64_t rows, std::int64_t columns);
  void (*log_softmax)(float* y, float* e, const float* x, std::int64_t rows, std::int64_t columns);
  void (*sparse_cross_entropy)(float* loss,
                               float* dx,
                               float* z,
                               const float* x,
                               const std::int64_t* labels,
                               std::int64_t rows,
                               std::int64_t columns);
  void (*cross_entropy)(float* loss,
                        float* dx,
                        float* z,
                        const float* x,
                        const float* labels,
                        std::int64_t rows,
                        std::int64_t columns);

  // Online softmax of attention scores; see isa/attention.inc. Per row: the maximum score so far,
  // the sum of weights relative to it, and the factor that rescales earlier weights.
  void (*attention_weights)(const ScoreBlocks& s, float* row_max, float* sums, float* factors);
  // `log_sums` and `means` have one value per column, padded to full blocks.
  void (*attention_grad)(const ScoreBlocks& s,
                         float* dw,
                         const float* log_sums,
                         const float* means);

  NormLoops norm[3];  ///< for float32, float16 and bfloat16
  NormLoops bfloat16_norm_with_float32_results;
  float (*squared_distances)(const float* x, float mean, std::int64_t n);
  void (*row_comoments)(
      float* sums, const float* dy, const float* x, const float* gamma, float mean, std::int64_t n);
  void (*normalize_row)(float* y, const float* x, const NormRow& p, std::int64_t n);
  // y: dx, dgamma and dbeta.
  void (*normalize_row_grad)(
      float* const* y, const float* dy, const float* x, const NormRow& p, std::int64_t n);
  // [float32, float16, bfloat16]
  void (*layer_norm_rows[3])(const LayerNormRows& p, std::int64_t rows, std::int64_t n);
  void (*layer_norm_grad_rows[3])(const LayerNormGradRows& p, std::int64_t rows, std::int64_t n);

  // [float32, float16]
  void (*lstm[2])(const LstmRow& s, std::int64_t n);
  void (*lstm_grad[2])(const LstmGradRow& s, std::int64_t n);
  void (*add_scaled)(float* y, const float* x, float scale, std::int64_t n);

  // Pooling windows along a row; see isa/pool.inc.
  void (*max_windows)(float* y, const float* x, const PoolWindows& windows);
  void (*mean_windows)(float* y, const float* x, const PoolWindows& windows);
  // [0] adds to dx; [1] assigns dx, for disjoint windows.
  void (*max_windows_grad[2])(float* dx,
                              const float* dy,
                              const float* x,
                              const PoolWindows& windows);
  void (*mean_windows_grad)(float* dx, const float* dy, const PoolWindows& windows);
  // The same for 16-bit values, whose infinity has the bits `infinity`. They return true, with an
  // invalid result, if there is a NaN.
  bool (*max_windows16)(std::uint16_t* y,
                        const std::uint16_t* x,
                        const PoolWindows& windows,
                        std::int16_t infinity);
  bool (*max_windows_grad16)(std::uint16_t* dx,
                             const std::uint16_t* dy,
                             const std::uint16_t* x,
                             const PoolWindows& windows,
                             std::int16_t infinity);

  bool (*all_finite32)(const void* x, std::int64_t n);
  bool (*all_finite16)(const void* x, std::int64_t n, std::uint16_t exponent);

  /// Four uniform random values for each of n counters.
  void (*uniforms)(float* y,
                   std::uint64_t seed,
                   std::uint64_t stream,
                   const std::uint64_t* counters,
                   std::int64_t n);
};

/// The best table that `isa` can run.
const Loops& loops(Isa isa);

const Loops& baseline_loops();
const Loops& avx2_loops();
const Loops& avx512_loops();
/// Replaces narrow_bfloat16 on processors with AVX512-BF16, whose other loops are avx512_loops().
void narrow_bfloat16_avx512_bf16(void* y, const float* x, std::int64_t n);

}  // namespace halfstep::backend::cpu::vector

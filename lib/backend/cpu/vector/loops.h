#pragma once
// The inner loops of the vector kernels: one table per instruction set, all compiled from the same
// source (isa/*.inc) and all with bit-identical results. They work on short runs of float32; 16-bit
// storage is widened into a run that stays in the first-level cache, and narrowed from it.
//
// Files compiled for an instruction set include this header with loop_arguments.h,
// functions/lists.h and intrinsics, nothing else: the linker could keep the copy of a shared inline
// function or template compiled there for the whole program. The scalar functions are templates
// over a type that each of those files has in its unnamed namespace, so their copies are local.

#include <cstdint>

#include "backend/capabilities.h"
#include "backend/cpu/vector/loop_arguments.h"

namespace halfstep::backend::cpu::vector {

/// Elements of a run.
inline constexpr std::int64_t k_run = 1024;

/// y[i] = f(in[0][i], in[1][i], ..., a); y may be one of the inputs.
using Map = void (*)(float* y, const float* const* in, std::int64_t n, float a);
struct MapRow {
  const char* op;
  int inputs;
  Map loop;
  const char* attribute = nullptr;  ///< name of the attribute for `a`
  bool exact = false;               ///< the result needs no rounding: see functions/function.h
  bool costly = false;              ///< see functions/function.h
  Map rounded[2] = {};              ///< the result rounded to float16 and to bfloat16
};

/// A reduction: of a run to one number, and of rows to one number per column.
struct FoldRow {
  const char* op;
  float (*run)(const float* x, std::int64_t n);
  void (*rows)(float* acc, const float* x, std::int64_t rows, std::int64_t columns);
  float start;
};

/// An optimizer update over a run: variable and slots, gradient, scalars.
using Update = void (*)(float* const* s, const float* g, std::int64_t n, const float* p);
struct UpdateRow {
  const char* op;
  int resources;
  int gradient;  ///< port
  Update loop;
  const char* flag = nullptr;  ///< attribute that selects the second loop
  Update flagged = nullptr;
};

template <class Row>
struct Rows {
  const Row* first;
  std::uint64_t count;

  const Row* begin() const { return first; }
  const Row* end() const { return first + count; }
};

struct Loops {
  Widen widen_float16, widen_bfloat16, widen_uint8 /* and bool */, widen_int32;
  Narrow narrow_float16, narrow_bfloat16, narrow_uint8, narrow_bool, narrow_int32;
  Round round_float16, round_bfloat16;
  Scale scale_float32, scale_float16, scale_bfloat16;

  Rows<MapRow> maps;
  Rows<FoldRow> folds;
  Rows<UpdateRow> updates;

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

  // Softmax of attention scores; see isa/attention.inc. Per row: the largest score so far, the sum
  // of weights relative to it, and the factor of earlier weights.
  void (*attention_weights)(const ScoreBlocks& s, float* largest, float* sums, float* factors);
  // `log_sums` and `means` have one value per column, padded to whole blocks.
  void (*attention_grad)(const ScoreBlocks& s,
                         float* dw,
                         const float* log_sums,
                         const float* means);

  NormLoops norm[3];  ///< of values in float32, float16 and bfloat16
  NormLoops bfloat16_norm_with_wide_results;
  float (*squared_distances)(const float* x, float mean, std::int64_t n);
  void (*row_comoments)(
      float* sums, const float* dy, const float* x, const float* gamma, float mean, std::int64_t n);
  void (*normalize_row)(float* y, const float* x, const NormRow& p, std::int64_t n);
  // y: dx, dgamma and dbeta.
  void (*normalize_row_grad)(
      float* const* y, const float* dy, const float* x, const NormRow& p, std::int64_t n);
  // Of values in float32, float16 and bfloat16.
  void (*layer_norm_rows[3])(const LayerNormRows& p, std::int64_t rows, std::int64_t n);
  void (*layer_norm_grad_rows[3])(const LayerNormGradRows& p, std::int64_t rows, std::int64_t n);

  void (*lstm[2])(const LstmRow& s, std::int64_t n);
  void (*lstm_grad[2])(const LstmGradRow& s, std::int64_t n);
  void (*add_scaled)(float* y, const float* x, float scale, std::int64_t n);

  // Pooling windows along a row; see isa/pool.inc.
  void (*max_windows)(float* y, const float* x, const PoolWindows& windows);
  void (*mean_windows)(float* y, const float* x, const PoolWindows& windows);
  // [0] adds to dx; [1] assigns, for windows that share no cell.
  void (*max_windows_grad[2])(float* dx,
                              const float* dy,
                              const float* x,
                              const PoolWindows& windows);
  void (*mean_windows_grad)(float* dx, const float* dy, const PoolWindows& windows);
  // The same for 16-bit values, whose infinity has the bits `infinity`. True: there is a NaN, and
  // the result is invalid.
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

  /// The uniform numbers of n counters, four each; computed for 64 counters at a time.
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
/// Narrow for processors with AVX512-BF16; all other loops are those of avx512_loops().
void narrow_bfloat16_avx512_bf16(void* y, const float* x, std::int64_t n);

}  // namespace halfstep::backend::cpu::vector

#pragma once
// A row-major matmul as cuBLASLt's column-major arguments.
//
// A row-major [m,n] matrix is a column-major [n,m] one, so C = op(A) op(B) becomes C^T = op(B)^T
// op(A)^T: cuBLASLt's A is our B, its B is our A, its m is our n. D stays column-major, as
// cuBLASLt's epilogues require: they run along D's rows, which are our columns.

#include <cstddef>
#include <cstdint>

#include "backend/cuda/vendor/matmul_key.h"

namespace halfstep::backend::cuda {

/// One stored column-major matrix.
struct LtMatrix {
  DType dtype = DType::float32;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;       ///< elements from one column to the next
  std::int64_t batch_stride = 0;  ///< elements from one matrix to the next

  bool operator==(const LtMatrix&) const = default;
};

enum class LtCompute : std::uint8_t {
  float32,            ///< CUBLAS_COMPUTE_32F
  float32_fast_tf32,  ///< CUBLAS_COMPUTE_32F_FAST_TF32
};

/// cublasLtEpilogue_t, with its numbers.
enum class LtEpilogue : std::uint32_t {
  none = 1,
  bias = 4,
  relu_bias = 2 | 4,
  relu_aux_bias = 2 | 4 | 128,
  drelu = 8 | 128,
  drelu_bgrad = 8 | 16 | 128,
  bgrada = 256,
};

struct LtArguments {
  LtCompute compute = LtCompute::float32;
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  LtMatrix a;  ///< our B
  LtMatrix b;  ///< our A
  LtMatrix d;  ///< our C; C and D share one layout
  std::int64_t batch = 1;
  LtEpilogue epilogue = LtEpilogue::none;
  DType bias_dtype = DType::float32;
  std::int64_t bias_elements = 0;  ///< 0: no bias pointer
  std::int64_t aux_leading = 0;    ///< bits from one column's mask to the next; 0: no mask
  /// Tensor cores are excluded: float32 operands are multiplied in IEEE float32.
  bool strict_float32 = false;

  bool operator==(const LtArguments&) const = default;
};

/// Errors: InternalError for a key that no library supports: extents below 1, dtypes other than
/// float16 -> float16|float32, bfloat16 -> bfloat16|float32, float32 -> float32, an epilogue with a
/// batch, a row stride shorter than the matrix row.
LtArguments lt_arguments(const MatmulKey& key);

/// Bytes of the mask that the mask epilogues read or write.
std::size_t aux_bytes(const LtArguments& arguments);

}  // namespace halfstep::backend::cuda

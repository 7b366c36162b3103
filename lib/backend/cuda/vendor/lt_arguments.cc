#include "backend/cuda/vendor/lt_arguments.h"

#include <array>

#include "core/error.h"

namespace halfstep::backend::cuda {
namespace {

/// By the number of the Epilogue.
constexpr std::array k_epilogues{LtEpilogue::none,
                                 LtEpilogue::bias,
                                 LtEpilogue::relu_bias,
                                 LtEpilogue::relu_aux_bias,
                                 LtEpilogue::drelu,
                                 LtEpilogue::drelu_bgrad,
                                 LtEpilogue::bgrada};

bool dtypes_exist(DType in, DType out) {
  return (is_half(in) || in == DType::float32) && (out == in || out == DType::float32);
}

/// A row-major [rows, columns] matrix as the equivalent column-major [columns, rows] one.
LtMatrix stored(DType dtype,
                std::int64_t rows,
                std::int64_t columns,
                std::int64_t stride,
                std::int64_t row = 0) {
  require(row == 0 || row >= columns, "rows of {} elements are {} apart", columns, row);
  return {.dtype = dtype,
          .rows = columns,
          .columns = rows,
          .leading = row == 0 ? columns : row,
          .batch_stride = stride};
}

}  // namespace

LtArguments lt_arguments(const MatmulKey& key) {
  const std::string what = to_string(key);
  require(key.m > 0 && key.n > 0 && key.k > 0 && key.batch > 0, "{}: empty", what);
  require(dtypes_exist(key.in, key.out), "{}: no such matmul", what);
  require(key.batch == 1 || key.epilogue == Epilogue::none, "{}: batch with epilogue", what);

  const graph::ops::FusedEpilogue& epilogue = traits_of(key.epilogue);
  const bool masked = epilogue.reads_mask || epilogue.writes_mask;
  const bool is_float32 = key.in == DType::float32;
  const bool tf32 = is_float32 && key.float32 == Float32Math::tf32;
  LtArguments lt;
  lt.compute = tf32 ? LtCompute::float32_fast_tf32 : LtCompute::float32;
  lt.strict_float32 = is_float32 && !tf32;
  lt.transpose_a = key.transpose_b;
  lt.transpose_b = key.transpose_a;
  lt.m = key.n;
  lt.n = key.m;
  lt.k = key.k;
  lt.a = stored(key.in,
                key.transpose_b ? key.n : key.k,
                key.transpose_b ? key.k : key.n,
                key.stride_b,
                key.row_b);
  lt.b = stored(
      key.in, key.transpose_a ? key.k : key.m, key.transpose_a ? key.m : key.k, key.stride_a);
  lt.d = stored(key.out, key.m, key.n, key.stride_c);
  lt.batch = key.batch;
  lt.epilogue = k_epilogues[static_cast<std::size_t>(key.epilogue)];
  lt.bias_dtype = key.out;
  lt.bias_elements = epilogue.bias || epilogue.sums ? lt.m : 0;
  lt.aux_leading = masked ? 8 * graph::ops::fused_mask_bytes(1, lt.m) : 0;
  return lt;
}

std::size_t aux_bytes(const LtArguments& arguments) {
  return static_cast<std::size_t>(arguments.aux_leading / 8 * arguments.n);
}

}  // namespace halfstep::backend::cuda

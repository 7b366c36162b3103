#include "backend/cuda/vendor/lt_arguments.h"

#include <algorithm>
#include <array>

#include "core/error.h"

namespace halfstep::backend::cuda {
namespace {

// cuBLASLt requires the columns of a mask at multiples of 128 bits.
constexpr std::int64_t k_mask_bits = 128;

std::int64_t mask_leading(std::int64_t units) {
  return (units + k_mask_bits - 1) / k_mask_bits * k_mask_bits;
}

/// The operands that an epilogue needs besides those of the matmul.
struct EpilogueRow {
  Epilogue ours;
  LtEpilogue theirs;
  bool bias;
  bool mask;
};
constexpr std::array<EpilogueRow, 7> k_epilogues{{
    {Epilogue::none, LtEpilogue::none, false, false},
    {Epilogue::bias, LtEpilogue::bias, true, false},
    {Epilogue::bias_relu, LtEpilogue::relu_bias, true, false},
    {Epilogue::bias_relu_mask, LtEpilogue::relu_aux_bias, true, true},
    {Epilogue::relu_gradient, LtEpilogue::drelu, false, true},
    {Epilogue::relu_gradient_bias_gradient, LtEpilogue::drelu_bgrad, true, true},
    {Epilogue::sums_of_b, LtEpilogue::bgrada, true, false},
}};

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

  const EpilogueRow& row = k_epilogues[static_cast<std::size_t>(key.epilogue)];
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
  lt.b = stored(key.in,
                key.transpose_a ? key.k : key.m,
                key.transpose_a ? key.m : key.k,
                key.stride_a);
  lt.d = stored(key.out, key.m, key.n, key.stride_c);
  lt.batch = key.batch;
  lt.epilogue = row.theirs;
  lt.bias_dtype = key.out;
  lt.bias_elements = row.bias ? lt.m : 0;
  lt.aux_leading = row.mask ? mask_leading(lt.m) : 0;
  return lt;
}

std::size_t aux_bytes(const LtArguments& arguments) {
  return static_cast<std::size_t>(arguments.aux_leading / 8 * arguments.n);
}

std::int64_t mask_bytes(std::int64_t m, std::int64_t n) { return mask_leading(n) / 8 * m; }

}  // namespace halfstep::backend::cuda

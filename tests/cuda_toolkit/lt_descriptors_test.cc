// cuBLASLt's descriptors, read back, and the selection among its algorithms.

#include "backend/cuda/vendor/real/lt_descriptors.h"

#include <doctest/doctest.h>

#include <ostream>

namespace halfstep::backend::cuda::real {
namespace {

template <class T>
T get(const LtDescriptors& lt, cublasLtMatmulDescAttributes_t name) {
  T value{};
  std::size_t written = 0;
  check(cublasLtMatmulDescGetAttribute(lt.matmul.get(), name, &value, sizeof value, &written),
        "cublasLtMatmulDescGetAttribute");
  REQUIRE(written == sizeof value);
  return value;
}

template <class T>
T get(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name) {
  T value{};
  std::size_t written = 0;
  check(cublasLtMatrixLayoutGetAttribute(layout, name, &value, sizeof value, &written),
        "cublasLtMatrixLayoutGetAttribute");
  REQUIRE(written == sizeof value);
  return value;
}

void expect_layout(cublasLtMatrixLayout_t layout, const LtMatrix& matrix, cudaDataType_t dtype) {
  CHECK(get<std::uint32_t>(layout, CUBLASLT_MATRIX_LAYOUT_TYPE) == dtype);
  CHECK(get<std::int32_t>(layout, CUBLASLT_MATRIX_LAYOUT_ORDER) == CUBLASLT_ORDER_COL);
  CHECK(get<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_ROWS) ==
        static_cast<std::uint64_t>(matrix.rows));
  CHECK(get<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_COLS) ==
        static_cast<std::uint64_t>(matrix.columns));
  CHECK(get<std::int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_LD) == matrix.leading);
}

TEST_CASE("lt descriptors: the library reads the arguments that were meant") {
  const MatmulKey key{.m = 128,
                      .n = 70,
                      .k = 33,
                      .transpose_a = true,
                      .in = DType::float16,
                      .out = DType::float16,
                      .epilogue = Epilogue::relu_gradient_bias_gradient};
  const LtArguments arguments = lt_arguments(key);
  const LtDescriptors lt(arguments);
  CHECK(get<std::int32_t>(lt, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE) == CUBLAS_COMPUTE_32F);
  CHECK(get<std::int32_t>(lt, CUBLASLT_MATMUL_DESC_SCALE_TYPE) == CUDA_R_32F);
  CHECK(get<std::int32_t>(lt, CUBLASLT_MATMUL_DESC_TRANSA) == CUBLAS_OP_N);
  CHECK(get<std::int32_t>(lt, CUBLASLT_MATMUL_DESC_TRANSB) == CUBLAS_OP_T);
  CHECK(get<std::uint32_t>(lt, CUBLASLT_MATMUL_DESC_EPILOGUE) == CUBLASLT_EPILOGUE_DRELU_BGRAD);
  CHECK(get<std::int32_t>(lt, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE) == CUDA_R_16F);
  CHECK(get<std::int64_t>(lt, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD) == 128);
  expect_layout(lt.a.get(), arguments.a, CUDA_R_16F);
  expect_layout(lt.b.get(), arguments.b, CUDA_R_16F);
  expect_layout(lt.d.get(), arguments.d, CUDA_R_16F);
}

TEST_CASE("lt descriptors: every epilogue has the library's number") {
  struct Row {
    Epilogue ours;
    cublasLtEpilogue_t theirs;
  };
  constexpr Row k_rows[] = {
      {Epilogue::none, CUBLASLT_EPILOGUE_DEFAULT},
      {Epilogue::bias, CUBLASLT_EPILOGUE_BIAS},
      {Epilogue::bias_relu, CUBLASLT_EPILOGUE_RELU_BIAS},
      {Epilogue::bias_relu_mask, CUBLASLT_EPILOGUE_RELU_AUX_BIAS},
      {Epilogue::relu_gradient, CUBLASLT_EPILOGUE_DRELU},
      {Epilogue::relu_gradient_bias_gradient, CUBLASLT_EPILOGUE_DRELU_BGRAD},
      {Epilogue::sums_of_b, CUBLASLT_EPILOGUE_BGRADA},
  };
  for (const Row& row : k_rows) {
    CAPTURE(name(row.ours));
    MatmulKey key{.m = 16, .n = 16, .k = 16, .in = DType::bfloat16, .out = DType::bfloat16};
    key.epilogue = row.ours;
    const LtDescriptors lt(lt_arguments(key));
    CHECK(get<std::uint32_t>(lt, CUBLASLT_MATMUL_DESC_EPILOGUE) == row.theirs);
  }
}

TEST_CASE("lt descriptors: TensorFloat-32 only when it is asked for; batches with their strides") {
  MatmulKey key{.m = 4, .n = 5, .k = 6, .batch = 7, .stride_a = 24, .stride_c = 20};
  const LtDescriptors strict(lt_arguments(key));
  CHECK(get<std::int32_t>(strict, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE) == CUBLAS_COMPUTE_32F);
  key.float32 = Float32Math::tf32;
  const LtDescriptors fast(lt_arguments(key));
  CHECK(get<std::int32_t>(fast, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE) == CUBLAS_COMPUTE_32F_FAST_TF32);
  // cuBLASLt's B is our A.
  CHECK(get<std::int32_t>(fast.b.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) == 7);
  CHECK(get<std::int64_t>(fast.b.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) == 24);
  CHECK(get<std::int64_t>(fast.a.get(), CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) == 0);
}

TEST_CASE("lt descriptors: which algorithms keep the promises") {
  constexpr std::uint64_t k_fma =
      CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
  constexpr std::uint64_t k_tf32 =
      CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32;
  constexpr std::uint64_t k_half =
      CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16F;
  constexpr std::uint64_t k_bf16_parts =
      CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA | CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF;
  constexpr std::uint64_t k_sums32 = CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F;
  constexpr std::uint64_t k_sums16 = CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F;

  MatmulKey key{.m = 8, .n = 8, .k = 8};
  const LtArguments strict = lt_arguments(key);
  key.float32 = Float32Math::tf32;
  const LtArguments fast = lt_arguments(key);
  key.in = key.out = DType::float16;
  const LtArguments half = lt_arguments(key);

  CHECK(keeps_promises(strict, k_fma | k_sums32));
  CHECK_FALSE(keeps_promises(strict, k_tf32 | k_sums32));
  CHECK_FALSE(keeps_promises(strict, k_bf16_parts | k_sums32));
  CHECK(keeps_promises(fast, k_tf32 | k_sums32));
  CHECK(keeps_promises(fast, k_fma | k_sums32));
  CHECK(keeps_promises(half, k_half | k_sums32));
  CHECK_FALSE(keeps_promises(half, k_half | k_sums16));
  CHECK_FALSE(keeps_promises(half, k_half | k_sums16 | k_sums32));
  CHECK_FALSE(keeps_promises(half, k_half | CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32I));
  CHECK(keeps_promises(half, k_half));
}

TEST_CASE("lt descriptors: strict float32 tells the heuristics which code it takes") {
  MatmulKey key{.m = 8, .n = 8, .k = 8};
  const auto mask_of = [](const MatmulKey& k, bool by_mask) {
    const auto preference = lt_preference(lt_arguments(k), 1 << 20, by_mask);
    std::uint64_t mask = 0;
    std::size_t written = 0;
    check(cublasLtMatmulPreferenceGetAttribute(
              preference.get(), CUBLASLT_MATMUL_PREF_IMPL_MASK, &mask, sizeof mask, &written),
          "cublasLtMatmulPreferenceGetAttribute");
    return mask;
  };
  CHECK((mask_of(key, true) & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) == 0);
  CHECK((mask_of(key, true) & CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32) == 0);
  CHECK((mask_of(key, false) & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) != 0);
  key.in = key.out = DType::float16;
  CHECK((mask_of(key, true) & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) != 0);
}

}  // namespace
}  // namespace halfstep::backend::cuda::real

#include "backend/cuda/vendor/real/lt_descriptors.h"

namespace halfstep::backend::cuda::real {
namespace {

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return CUDA_R_16F;
    case DType::bfloat16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

cublasComputeType_t compute_type(LtCompute compute) {
  return compute == LtCompute::float32_fast_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F;
}

template <class T>
void set(cublasLtMatmulDesc_t matmul, cublasLtMatmulDescAttributes_t name, const T& value) {
  check(cublasLtMatmulDescSetAttribute(matmul, name, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
}

template <class T>
void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t name, const T& value) {
  check(cublasLtMatrixLayoutSetAttribute(layout, name, &value, sizeof value),
        "cublasLtMatrixLayoutSetAttribute");
}

template <class T>
void set(cublasLtMatmulPreference_t preference,
         cublasLtMatmulPreferenceAttributes_t name,
         const T& value) {
  check(cublasLtMatmulPreferenceSetAttribute(preference, name, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
}

Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> layout(const LtMatrix& matrix,
                                                                  std::int64_t batch) {
  cublasLtMatrixLayout_t raw = nullptr;
  check(cublasLtMatrixLayoutCreate(&raw,
                                   data_type(matrix.dtype),
                                   static_cast<std::uint64_t>(matrix.rows),
                                   static_cast<std::uint64_t>(matrix.columns),
                                   matrix.leading),
        "cublasLtMatrixLayoutCreate");
  Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> owned(raw);
  if (batch != 1) {
    set(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(batch));
    set(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.batch_stride);
  }
  return owned;
}

}  // namespace

LtDescriptors::LtDescriptors(const LtArguments& arguments) {
  cublasLtMatmulDesc_t raw = nullptr;
  check(cublasLtMatmulDescCreate(&raw, compute_type(arguments.compute), CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  matmul.reset(raw);
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(raw, CUBLASLT_MATMUL_DESC_TRANSA, operation(arguments.transpose_a));
  set(raw, CUBLASLT_MATMUL_DESC_TRANSB, operation(arguments.transpose_b));
  set(raw, CUBLASLT_MATMUL_DESC_EPILOGUE, static_cast<std::uint32_t>(arguments.epilogue));
  // The heuristics use the alignment of the addresses only.
  const void* const aligned = reinterpret_cast<const void*>(std::uintptr_t{k_operand_alignment});
  if (arguments.bias_elements > 0) {
    set(raw, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(arguments.bias_dtype));
    set_bias(aligned);
  }
  if (arguments.aux_leading > 0) {
    set(raw, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, arguments.aux_leading);
    set_mask(aligned);
  }
  a = layout(arguments.a, arguments.batch);
  b = layout(arguments.b, arguments.batch);
  d = layout(arguments.d, arguments.batch);
}

void LtDescriptors::set_bias(const void* address) {
  set(matmul.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, address);
}

void LtDescriptors::set_mask(const void* address) {
  set(matmul.get(), CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, address);
}

Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> lt_preference(
    const LtArguments& arguments, std::size_t workspace_limit, bool by_mask) {
  cublasLtMatmulPreference_t raw = nullptr;
  check(cublasLtMatmulPreferenceCreate(&raw), "cublasLtMatmulPreferenceCreate");
  Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> owned(raw);
  set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_limit});
  for (const auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    set(raw, name, k_operand_alignment);
  }
  // Split-k partial sums: neither in the output's dtype nor by atomics.
  set(raw,
      CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  if (arguments.strict_float32 && by_mask) {
    set(raw,
        CUBLASLT_MATMUL_PREF_IMPL_MASK,
        std::uint64_t{CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA |
                      CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_TYPE_MASK |
                      CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F});
  }
  return owned;
}

bool keeps_promises(const LtArguments& arguments, std::uint64_t flags) {
  // Only flags that show other sums are a reason to refuse: the compute type of the call asks for
  // float32, and a version of the library may leave the field empty or set further bits.
  const std::uint64_t sums = flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_TYPE_MASK;
  if ((sums & CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_16F) != 0) return false;
  if (sums != 0 && (sums & CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F) == 0) return false;
  if (!arguments.strict_float32) return true;
  return (flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK) == 0 &&
         (flags & CUBLASLT_NUMERICAL_IMPL_FLAGS_OP_INPUT_TYPE_MASK) ==
             CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F;
}

}  // namespace halfstep::backend::cuda::real

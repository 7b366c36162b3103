#pragma once
// cuBLASLt's descriptors of a matmul. Creating them needs no device.

#include <memory>

#include "backend/cuda/vendor/lt_arguments.h"
#include "backend/cuda/vendor/real/check.h"

namespace halfstep::backend::cuda::real {

/// Smallest alignment of all operands, biases and masks.
inline constexpr std::uint32_t k_operand_alignment = 16;

/// Owns an object of a cublasLt...Create function.
template <class T, auto destroy>
struct Destroy {
  void operator()(T* raw) const { destroy(raw); }
};
template <class Handle, auto destroy>
using Owned =
    std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<std::remove_pointer_t<Handle>, destroy>>;

struct LtDescriptors {
  explicit LtDescriptors(const LtArguments& arguments);

  /// Set the epilogue's operands; only for epilogues that have them.
  void set_bias(const void* address);
  void set_mask(const void* address);

  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> matmul;
  Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> a, b, d;
};

/// Restricts the heuristics: at most `workspace_limit` bytes; float32 accumulation in a fixed
/// order, not in the output's dtype; no tensor cores when float32 is strict and `by_mask`.
Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> lt_preference(
    const LtArguments& arguments, std::size_t workspace_limit, bool by_mask);

/// Whether an algorithm's CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS satisfy the arguments: strict
/// float32 excludes tensor cores and narrower inputs; all accumulate in float32.
bool keeps_promises(const LtArguments& arguments, std::uint64_t implementation_flags);

}  // namespace halfstep::backend::cuda::real

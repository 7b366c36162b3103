#pragma once
// cuBLASLt's descriptors of a product. Making them needs no device.

#include <memory>

#include "backend/cuda/vendor/lt_arguments.h"
#include "backend/cuda/vendor/real/check.h"

namespace halfstep::backend::cuda::real {

/// What every operand's address is a multiple of, at least; biases and masks too.
inline constexpr std::uint32_t k_operand_alignment = 16;

/// Owns what a cublasLt...Create function made.
template <class T, auto destroy>
struct Destroy {
  void operator()(T* raw) const { destroy(raw); }
};
template <class Handle, auto destroy>
using Owned =
    std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<std::remove_pointer_t<Handle>, destroy>>;

struct LtDescriptors {
  explicit LtDescriptors(const LtArguments& arguments);

  /// Where the epilogue finds its operands; only for epilogues that have them.
  void set_bias(const void* address);
  void set_mask(const void* address);

  Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> product;
  Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> a, b, d;
};

/// What the heuristics may choose from: at most `workspace_limit` bytes; sums in float32, not in
/// the output's dtype nor in no order; without tensor cores when float32 is strict and `by_mask`.
Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> lt_preference(
    const LtArguments& arguments, std::size_t workspace_limit, bool by_mask);

/// Whether an algorithm's CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS are what the arguments promise:
/// strict float32 takes no tensor cores and no narrower inputs; everything adds in float32.
bool keeps_promises(const LtArguments& arguments, std::uint64_t implementation_flags);

}  // namespace halfstep::backend::cuda::real

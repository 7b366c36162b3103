#pragma once
// One optimizer step of variables and their slots, in place, by the rules of functions/update.h.
// Nothing is written where *ok is false. One rounding per stored tensor; the new weight uses the
// unrounded slot.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "backend/cuda/kernels/stream.h"
#include "backend/functions/update.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

struct UpdatedTensor {
  void* variable = nullptr;
  std::array<void*, 3> slots{};  ///< in the op's order
  const void* gradient = nullptr;
  DType gradient_dtype{};
  void* copy = nullptr;               ///< the new weight, rounded to copy_dtype; null: none
  DType copy_dtype = DType::float16;  ///< or bfloat16
  std::int64_t elements = 0;
  /// Elements in a row of the variable, and in one of gradient and copy, of which the first are
  /// read and written. Equal rows: any two equal numbers.
  std::int64_t columns = 0;
  std::int64_t padded_columns = 0;
  bool decayed = false;  ///< the gradient is `gradient` + decay * (2 * variable)
};

/// One launch for up to 48 tensors. Variables, slots and scalars have `dtype`; so have gradients,
/// which may also be float16 or bfloat16 where it is float32.
struct UpdateParams {
  DType dtype{};                                ///< floating
  std::span<const UpdatedTensor> tensors = {};  ///< host memory that holds device addresses
  /// Addresses in device memory; null where the op has none.
  functions::UpdateScalars<const void*> scalars = {};
  const void* decay = nullptr;            ///< of UpdatedTensor::decayed
  const void* unscale = nullptr;          ///< by which gradients are multiplied; null: 1
  bool reciprocal = false;                ///< of `unscale`
  const std::int64_t* updates = nullptr;  ///< before this one: gives the powers of beta1 and beta2
  double decay_by_rate = 0;               ///< variable -= variable * (this * lr) comes first
  bool flag = false;                      ///< of the rule
  const bool* ok = nullptr;               ///< null: always
};

struct Update {
  std::string_view op;  ///< "ResourceApplyAdam"
  const char* flag;     ///< name of the attribute, or null
  void (*run)(Stream stream, const UpdateParams& params);
};
/// The update of an op; nullptr for other ops.
const Update* update_of(std::string_view op);

}  // namespace halfstep::backend::cuda::kernels

#pragma once
// One optimizer step of variables and their slots, in place; formulas at the ops' definitions
// (graph/ops/update.cc). Nothing is written where *ok is false. One rounding per stored tensor; the
// new weight uses the unrounded slot.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"

namespace halfstep::backend::cuda::kernels {

/// An optimizer; the comment lists its slots in the op's order.
enum class Update {
  gradient_descent,
  momentum,           ///< accum
  keras_rms_prop,     ///< ms
  rms_prop,           ///< ms, mom
  centered_rms_prop,  ///< mg, ms, mom
  adam,               ///< m, v
  adam_w,             ///< m, v
  adagrad,            ///< accum
};

/// The update of an op, such as "ResourceApplyAdam"; nothing for other ops.
std::optional<Update> update_of(std::string_view op);

struct UpdatedTensor {
  void* variable = nullptr;
  std::array<void*, 3> slots{};
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

/// One launch for up to 48 tensors. Variables and slots have `dtype`; so have gradients, which may
/// also be float16 or bfloat16 where it is float32. Gradients are multiplied by `unscale` in the
/// compute dtype first. Hyperparameters, `decay` and `unscale` are scalars of `dtype` in device
/// memory, null where the update has none.
struct UpdateParams {
  Update update{};
  DType dtype{};                                ///< floating
  std::span<const UpdatedTensor> tensors = {};  ///< host memory that holds device addresses
  const void* unscale = nullptr;
  bool reciprocal = false;  ///< of `unscale`
  const void* decay = nullptr;
  const void* rate = nullptr;  ///< lr; alpha of gradient_descent
  const void* momentum = nullptr;
  const void* rho = nullptr;
  const void* beta1_power = nullptr;
  const void* beta2_power = nullptr;
  const std::int64_t* updates = nullptr;  ///< before this one: gives the powers of beta1 and beta2
  const void* beta1 = nullptr;
  const void* beta2 = nullptr;
  const void* epsilon = nullptr;
  const void* weight_decay = nullptr;  ///< of adam_w
  double decay_by_rate = 0;            ///< of any: variable -= variable * (this * lr) comes first
  bool nesterov = false;
  bool update_slots = true;  ///< adagrad
  const bool* ok = nullptr;  ///< null: always
};
void update(Stream stream, const UpdateParams& params);

}  // namespace halfstep::backend::cuda::kernels

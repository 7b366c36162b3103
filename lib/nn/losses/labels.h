#pragma once
// Checks that the labels of a data set match the model's outputs under a loss.

#include <cstdint>
#include <optional>

#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"
#include "nn/losses/loss.h"

namespace halfstep::nn {

/// Shapes: `output` and `label` of one sample, without the batch; a class number has rank 0.
/// Errors: UserError(config) at `where`, the position of the loss, when the loss cannot compare
/// them.
void check_labels_fit(
    LabelKind kind, const Shape& output, const Shape& label, DType label_dtype, const Where& where);

/// The number of valid class numbers, from 0 on, for an output of this shape; nothing where every
/// number is valid.
std::optional<std::int64_t> label_limit(LabelKind kind, const Shape& output);

}  // namespace halfstep::nn

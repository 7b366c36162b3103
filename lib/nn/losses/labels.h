#pragma once
// Whether the labels of a data set are ones that a loss can compare the model's outputs with.

#include <cstdint>
#include <optional>

#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"
#include "nn/losses/loss.h"

namespace halfstep::nn {

/// Shapes: `output` and `label` of one sample, without the batch; a class number has rank 0.
/// Errors: UserError(config) at `where`, the place of the loss, when there is no such comparison.
void check_labels_fit(
    LabelKind kind, const Shape& output, const Shape& label, DType label_dtype, const Where& where);

/// How many class numbers, from 0 on, mean something for an output of this shape; nothing where
/// every number does.
std::optional<std::int64_t> label_limit(LabelKind kind, const Shape& output);

}  // namespace halfstep::nn

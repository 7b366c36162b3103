#pragma once
// Normalizes splits, as read from files, to the invariants of a Dataset.

#include "data/dataset.h"

namespace halfstep::data {

/// Images become uint8 or float32 with at least one axis per sample (two axes get a channel axis);
/// labels become int32 [N], or float32 [N] or [N, k]. `what` names the split in errors. Errors:
/// UserError(data) for an empty split, different counts of labels and images, labels beyond int32.
void normalise(Split& split, const std::string& what);

/// Errors: UserError(data) naming the first NaN or infinity in float images or labels.
void check_finite(const Split& split, const std::string& what);

/// Keeps the first `count` samples.
/// Errors: UserError(config) when there are fewer, or count is below 1.
void keep_first(Split& split, std::int64_t count, const std::string& what, const Where& where);

}  // namespace halfstep::data

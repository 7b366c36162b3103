#pragma once
// Brings splits, as files have them, to the form and the promises of a Dataset.

#include "data/dataset.h"

namespace halfstep::data {

/// Images become uint8 or float32 with at least one axis a sample (two axes get a channel axis);
/// labels become int32 [N], or float32 [N] or [N, k].
/// Errors: UserError(data) for an empty split, other counts of labels than images, labels beyond
/// int32. `what` names the split in them.
void normalise(Split& split, const std::string& what);

/// Errors: UserError(data) naming the first NaN or infinity in float images or labels.
void check_finite(const Split& split, const std::string& what);

/// Keeps the first `count` samples.
/// Errors: UserError(config) when there are fewer, or count is below 1.
void keep_first(Split& split, std::int64_t count, const std::string& what, const Where& where);

}  // namespace halfstep::data

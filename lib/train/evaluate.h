#pragma once

#include "train/session.h"

namespace halfstep::train {

/// Loss, metrics, predictions and confusion over all rows, in order, without dropout or
/// augmentation. Sums are kept in double.
Evaluation evaluate(Session& session, const data::SplitView& rows);

/// The model's float32 outputs for every image, [samples, ...]; labels are not needed.
Tensor predict(Session& session, const TensorView& images);

}  // namespace halfstep::train

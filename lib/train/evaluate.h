#pragma once

#include "train/session.h"

namespace halfstep::train {

/// Loss, metrics, predictions and confusion matrix over all samples, in order, without dropout or
/// augmentation. Sums are accumulated in double.
Evaluation evaluate(Session& session, const data::SplitView& rows);

/// The model's float32 outputs for every image, [samples, ...]; no labels are used.
Tensor predict(Session& session, const TensorView& images);

}  // namespace halfstep::train

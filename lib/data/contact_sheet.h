#pragma once
// A contact sheet of samples, for a visual check of labels and axes.

#include "data/dataset.h"

namespace halfstep::data {

/// The first training samples of each of up to 20 classes, one class per line, in the order of
/// class numbers; for labels that are not classes, the first samples. float32 values are mapped
/// linearly from [min, max] of the shown samples to [0, 255]. A clip shows its middle frame, a
/// sample with other than 1 or 3 channels its first channel. Shapes: [height, width, 1 or 3].
/// Dtypes: uint8. Errors: UserError(data) for samples that are not images.
Tensor contact_sheet(const Dataset& dataset);

}  // namespace halfstep::data

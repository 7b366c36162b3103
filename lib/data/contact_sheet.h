#pragma once
// Samples side by side in one picture, to see whether labels and axes are as they should be.

#include "data/dataset.h"

namespace halfstep::data {

/// The first training samples of each of up to 20 classes, a class a line, in the order of their
/// numbers; of other labels the first samples. Values that are no bytes are mapped from the
/// smallest and the largest one that is shown to 0 and 255; of a clip the middle frame is shown, of
/// channels other than 1 and 3 the first one. Shapes: [height, width, 1 or 3]. Dtypes: uint8.
/// Errors: UserError(data) for samples that are no pictures.
Tensor contact_sheet(const Dataset& dataset);

}  // namespace halfstep::data

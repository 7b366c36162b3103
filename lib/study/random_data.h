#pragma once
// Samples without meaning, to measure time where the real set is not at hand.

#include <cstdint>

#include "data/dataset.h"

namespace halfstep::study {

/// Random pixels and classes; no test split. The same seed gives the same samples.
/// Dtypes: images uint8 [samples, ...sample], labels int32 [samples].
data::Dataset random_dataset(const Shape& sample,
                             std::int64_t classes,
                             std::int64_t samples,
                             std::uint64_t seed);

}  // namespace halfstep::study

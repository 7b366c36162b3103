#pragma once
// Random samples, to measure time or to inspect a model without the real data set.

#include <cstdint>
#include <string_view>
#include <vector>

#include "config/run_spec.h"
#include "data/dataset.h"
#include "nn/model.h"

namespace halfstep::study {

/// The name of data sets generated here.
inline constexpr std::string_view k_random_name = "random";

/// The inputs of a model as the data know them.
std::vector<data::InputSpec> input_parts(const nn::Model& model);

/// The shapes of the data that a config's model and loss accept, without samples: bytes of the
/// model's input shape, or floats where the model takes indices; class numbers, or float targets of
/// the output's shape for a regression and for several events. Errors: UserError(config) with all
/// problems of the model.
data::Dataset describe_data(const config::RunSpec& spec);

/// Random samples with the shapes, dtypes and classes of `description`; no test split. The same
/// seed gives the same samples. Bytes, class numbers and indices are uniform, floats are uniform in
/// [0, 1).
data::Dataset random_samples(const data::Dataset& description,
                             std::int64_t samples,
                             std::uint64_t seed);

}  // namespace halfstep::study

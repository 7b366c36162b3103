#include "data/value_checks.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace halfstep::data {

void check_labels(const SplitView& split,
                  std::int64_t classes,
                  std::string_view what,
                  std::optional<std::int64_t> ignored,
                  bool can_ignore) {
  if (split.labels.dtype != DType::int32) return;
  const std::span<const std::int32_t> labels(split.labels.as<const std::int32_t>(),
                                             static_cast<std::size_t>(split.labels.elements()));
  const std::size_t each = labels.size() / static_cast<std::size_t>(split.samples());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if ((labels[i] >= 0 && labels[i] < classes) || labels[i] == ignored) continue;
    throw UserError(
        ErrorKind::data,
        {},
        fmt::format(
            "{}: label {} of sample {} is not in 0..{}", what, labels[i], i / each, classes - 1),
        can_ignore ? "sparse_categorical_crossentropy ignores labels equal to its ignore_class"
                   : "");
  }
}

void check_probabilities(const TensorView& labels,
                         std::int64_t first,
                         std::int64_t count,
                         float lowest,
                         std::string_view what,
                         std::string_view loss) {
  const std::int64_t samples = labels.shape[0], each = labels.elements() / samples;
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const float* of_sample = labels.as<const float>() + sample * each + first;
    const auto wrong =
        std::find_if(of_sample, of_sample + count, [&](float x) { return x < lowest || x > 1; });
    if (wrong == of_sample + count) continue;
    const std::string message =
        fmt::format("{}: sample {} has the label {}, which {} cannot compare with a ",
                    what,
                    sample,
                    *wrong,
                    loss);
    if (lowest < 0) {
      throw UserError(ErrorKind::data, {}, message + "score", "its labels are 1, and -1 or 0");
    }
    throw UserError(ErrorKind::data,
                    {},
                    message + "probability",
                    "labels of bytes are divided by 255 before, as in Keras; real values are for "
                    "mean_squared_error");
  }
}

void check_indices(const TensorView& samples,
                   std::int64_t first,
                   std::int64_t count,
                   std::int64_t limit,
                   std::string_view what,
                   std::optional<std::int64_t> ignored) {
  const std::int64_t each = samples.shape.elements() / samples.shape[0];
  for (std::int64_t sample = 0; sample < samples.shape[0]; ++sample) {
    const std::int64_t begin = sample * each + first;
    for (std::int64_t i = begin; i < begin + count; ++i) {
      const double value = element_as_double(samples, i);
      if (value >= 0 && value < static_cast<double>(limit) && value == std::floor(value)) continue;
      if (ignored && value == static_cast<double>(*ignored)) continue;
      throw UserError(ErrorKind::data,
                      {},
                      fmt::format("{}: value {} of sample {} is not a whole number in 0..{}",
                                  what,
                                  value,
                                  sample,
                                  limit - 1));
    }
  }
}

}  // namespace halfstep::data

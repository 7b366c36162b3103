#pragma once
// Range checks of the values of samples and labels, as required by layers and losses.

#include <cstdint>
#include <optional>
#include <string_view>

#include "data/dataset.h"

namespace halfstep::data {

/// Every integer label must be in [0, classes), or the one that the loss ignores; float labels
/// pass. Errors: UserError(data) naming the first label that is not, and the remedy if the loss can
/// ignore one. `what` is the source it names.
void check_labels(const SplitView& split,
                  std::int64_t classes,
                  std::string_view what,
                  std::optional<std::int64_t> ignored = {},
                  bool can_ignore = false);

/// Values [first, first + count) of each row of float32 labels must be in [lowest, 1], as the loss
/// of this name takes them: probabilities from 0 on, or signs from -1 on; NaN passes.
/// Errors: UserError(data) naming the first one that is not.
void check_probabilities(const TensorView& labels,
                         std::int64_t first,
                         std::int64_t count,
                         float lowest,
                         std::string_view what,
                         std::string_view loss);

/// Values [first, first + count) of each sample must be whole numbers in [0, limit), or ignored
/// labels; as above.
void check_indices(const TensorView& samples,
                   std::int64_t first,
                   std::int64_t count,
                   std::int64_t limit,
                   std::string_view what,
                   std::optional<std::int64_t> ignored = {});

}  // namespace halfstep::data

#pragma once
// Finds entries and arguments by the names that a user may write.

#include <string>
#include <string_view>
#include <vector>

#include "reference/entry.h"

namespace halfstep::app {

/// What `word` names: entries ("conv2d", "optimizer.adam"), keys of a config ("training.epochs"),
/// arguments ("conv2d.filters", "optimizer.beta_1"), and where there is none of these, the keys and
/// arguments whose last part it is or that have it as a value. Positions in lists do not count
/// ("model.layers[0].units"). Empty: nothing has that name.
std::vector<Entry> find_entries(const std::vector<Topic>& topics, std::string_view word);

/// All names that find_entries knows in full.
std::vector<std::string> reference_names(const std::vector<Topic>& topics);

}  // namespace halfstep::app

#pragma once
// Finds entries and arguments by the names that users write.

#include <string>
#include <string_view>
#include <vector>

#include "reference/entry.h"

namespace halfstep::app {

/// The entries named `word`: entries ("conv2d", "optimizer.adam"), keys of a config
/// ("training.epochs"), arguments ("conv2d.filters", "optimizer.beta_1"); if there is none, the
/// keys and arguments whose last component it is or that have it as a value. List indices are
/// ignored ("model.layers[0].units"). Empty: no match.
std::vector<Entry> find_entries(const std::vector<Topic>& topics, std::string_view word);

/// All full names that find_entries accepts.
std::vector<std::string> reference_names(const std::vector<Topic>& topics);

}  // namespace halfstep::app

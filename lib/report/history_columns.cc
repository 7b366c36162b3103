#include "report/history_columns.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace halfstep::report {
namespace {

constexpr std::array<std::string_view, 8> k_other_columns{"epoch",
                                                          "partial",
                                                          "learning_rate",
                                                          "loss_scale",
                                                          "skipped_steps",
                                                          "steps",
                                                          "train_seconds",
                                                          "eval_seconds"};

}  // namespace

std::vector<std::string> metric_columns(const Json& history) {
  std::vector<std::string> names;
  for (const auto& [name, column] : history.items()) {
    const bool other =
        std::find(k_other_columns.begin(), k_other_columns.end(), name) != k_other_columns.end();
    if (!other) names.push_back(name);
  }
  return names;
}

}  // namespace halfstep::report

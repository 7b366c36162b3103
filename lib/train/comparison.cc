#include "train/comparison.h"

#include <cmath>

namespace halfstep::train {

std::optional<double> ComparedRun::metric(const std::string& name) const {
  const std::size_t cut = name.find('_');
  if (cut == std::string::npos) return std::nullopt;
  const std::string split = name.substr(0, cut);
  const bool from_history = split == "val" || split == "train";
  if (from_history ? history.empty() : split != "test") return std::nullopt;
  const Metrics& metrics = split == "test"  ? test
                           : split == "val" ? history.back().validation
                                            : history.back().train;
  const auto it = metrics.find(name.substr(cut + 1));
  if (it == metrics.end() || !std::isfinite(it->second)) return std::nullopt;
  return it->second;
}

const ComparedPolicy* Comparison::find(const std::string& policy) const {
  for (const ComparedPolicy& p : policies) {
    if (p.policy == policy) return &p;
  }
  return nullptr;
}

}  // namespace halfstep::train

#pragma once
// In which settings two configs differ, and what a run that is resumed may change.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_spec.h"

namespace halfstep::config {

/// A setting that has another value, as YAML; "(none)" for one that a side lacks.
struct Difference {
  std::string path;
  std::string before;
  std::string after;
};

/// Whether the setting `path` is `section` or lies in it.
bool within(std::string_view path, std::string_view section);

/// Every setting in which `after` differs from `before`, defaults included. Numbers are compared by
/// value, so that 1e-3 is 0.001. Layers and other lists of maps are compared item by item; another
/// list is one setting.
std::vector<Difference> differences(const RunSpec& before, const RunSpec& after);

/// Refuses a resume with settings that lead to another result than those the run began with, unless
/// an entry of `allowed` names the setting or a section around it. Settings of reports,
/// checkpoints, places and the end of training are free; model, data, seed and batch size are never
/// allowed to change, because the state of a run means nothing under others. Returns the
/// differences that were allowed. Errors: UserError(config) with all that is refused, and for
/// entries of `allowed` that name no difference.
std::vector<Difference> check_resume(const RunSpec& before,
                                     const RunSpec& after,
                                     std::span<const std::string> allowed);

}  // namespace halfstep::config

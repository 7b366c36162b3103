#pragma once
// The differences between two configs, and those that a resumed run may have.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/run_spec.h"

namespace halfstep::config {

/// A setting whose value differs, as YAML; "(none)" for a setting that one config lacks.
struct Difference {
  std::string path;
  std::string before;
  std::string after;
};

/// Whether the setting `path` is `section` or a descendant of it.
bool within(std::string_view path, std::string_view section);

/// Every setting in which `after` differs from `before`, defaults included. Numbers are compared by
/// value, so that 1e-3 is 0.001. Layers and other lists of maps are compared item by item; another
/// list is one setting.
std::vector<Difference> differences(const RunSpec& before, const RunSpec& after);

/// Rejects a resume whose settings change the result, unless an entry of `allowed` names the
/// setting or a section that contains it. Settings of reports, checkpoints, paths and the end of
/// training may differ freely; model, data, seed and batch size may never differ, because the
/// stored state depends on them. Returns the differences that were allowed. Errors:
/// UserError(config) with all rejected settings, and for entries of `allowed` that name no
/// difference.
std::vector<Difference> check_resume(const RunSpec& before,
                                     const RunSpec& after,
                                     std::span<const std::string> allowed);

}  // namespace halfstep::config

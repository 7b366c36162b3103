#pragma once
// Checks of a config's keys against each other: check() in run_spec.h runs them all.

#include <string>
#include <string_view>
#include <utility>

#include "config/node.h"
#include "config/run_spec.h"
#include "config/warning_codes.h"

namespace halfstep::config {

/// A config with its source, and the diagnostics that its checks add to.
class CheckedSpec {
 public:
  CheckedSpec(RunSpec& spec, Diagnostics& diagnostics) : spec_(spec), diagnostics_(diagnostics) {}

 protected:
  /// Whether the config has a value other than null at this path.
  bool is_set(std::string_view path) const {
    const Node* node = find_path(spec_.source, path);
    return node != nullptr && node->kind != Node::Kind::null;
  }

  bool is_map(std::string_view path) const {
    const Node* node = find_path(spec_.source, path);
    return node != nullptr && node->kind == Node::Kind::map;
  }

  /// The location of a path for use inside a message: "a.yaml:3:5", "--policy mixed_float16".
  std::string location(std::string_view path) const {
    Where where = spec_.where(path);
    where.path.clear();
    return to_string(where);
  }

  void error(std::string_view path, std::string message, std::string hint = {}) {
    diagnostics_.error(spec_.where(path), std::move(message), std::move(hint));
  }

  void warn(std::string_view code, std::string_view path, std::string message) {
    spec_.warnings.push_back(warning(code, spec_.where(path), std::move(message)));
  }

  RunSpec& spec_;
  Diagnostics& diagnostics_;
};

/// Checks the section `data`; `streams` turns `shuffle` off.
void check_data(const CheckedSpec& checked);

}  // namespace halfstep::config

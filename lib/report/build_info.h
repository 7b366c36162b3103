#pragma once

#include <string_view>

namespace halfstep::report {

/// The state of the checkout when the program was compiled.
struct BuildInfo {
  std::string_view version;
  std::string_view build_type;
  std::string_view git_commit;  ///< "" outside a checkout
  bool git_dirty = false;
  std::string_view compiler;
};

BuildInfo build_info();

}  // namespace halfstep::report

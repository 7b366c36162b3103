#pragma once

namespace halfstep::config {

/// How a config is printed.
struct PrintOptions {
  bool minimal = false;         ///< leave out values equal to their default
  bool origins = false;         ///< add `  # file:line` or `  # default` to each line
  bool absolute_paths = false;  ///< so that the text can be read back from another directory
};

}  // namespace halfstep::config

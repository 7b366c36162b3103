#pragma once
// Warnings of configs, models and runs: the one way in which they reach the user.

#include <vector>

#include "config/run_spec.h"

namespace halfstep::app {

/// `--strict`: from now on a warning is an error.
void treat_warnings_as_errors(bool strict);

/// Errors: with --strict UserError(config) that lists the warnings, if there are any.
void refuse_warnings(const std::vector<config::Warning>& warnings);

/// Prints each warning to stderr. Errors: as refuse_warnings.
void print_warnings(const std::vector<config::Warning>& warnings);

}  // namespace halfstep::app

#pragma once
// Reporting of the warnings of configs, models and runs.

#include <span>
#include <vector>

#include "config/run_spec.h"

namespace halfstep::app {

/// `--strict`: turns warnings into errors from now on.
void treat_warnings_as_errors(bool strict);

/// Errors: with --strict UserError(config) with the warnings, if there are any.
void refuse_warnings(const std::vector<config::Warning>& warnings);

/// Prints each warning to stderr, with --strict too: a run that has ended cannot be refused.
void log_warnings(std::span<const config::Warning> warnings);

/// Prints each warning to stderr. Errors: as refuse_warnings.
void print_warnings(const std::vector<config::Warning>& warnings);

}  // namespace halfstep::app

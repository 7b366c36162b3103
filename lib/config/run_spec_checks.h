#pragma once
// The rules that span several fields of a RunSpec.

#include "config/run_spec.h"

namespace halfstep::config {

/// Errors go to `diagnostics`, warnings to `spec.warnings`.
void check(RunSpec& spec, Diagnostics& diagnostics);

}  // namespace halfstep::config

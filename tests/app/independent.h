#pragma once
// Validation of reports by an independent validator.

#include <string>
#include <vector>

#include "app/process.h"

namespace halfstep::test {

/// Checks that python3-jsonschema finds files valid by the schema of all kinds; says so where it is
/// not installed.
void check_independently(const TemporaryDirectory& directory,
                         const std::vector<std::string>& files);

}  // namespace halfstep::test

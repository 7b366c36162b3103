#pragma once
// Where the tests find what they need.

#include <filesystem>

namespace halfstep::test {

/// The root of the sources.
std::filesystem::path source_dir();

/// The program `halfstep` of this build.
std::filesystem::path program();

}  // namespace halfstep::test

#pragma once
// Paths of files that the tests need.

#include <filesystem>

namespace halfstep::test {

/// The root of the sources.
std::filesystem::path source_dir();

/// The program `halfstep` of this build.
std::filesystem::path program();

/// The CUDA backend over an emulated device.
std::filesystem::path emulated_plugin();

}  // namespace halfstep::test

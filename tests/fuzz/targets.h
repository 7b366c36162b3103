#pragma once
// The readers of files that others wrote, each as a function of the bytes of one file, for the
// driver of this folder and for libFuzzer.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep::fuzz {

struct Target {
  std::string_view name;
  /// Reads one input and uses the result. Returns 0; throws anything but a UserError, and a
  /// std::logic_error where the result contradicts itself.
  int (*test_one)(const std::uint8_t* bytes, std::size_t size);
  std::vector<std::string> (*seeds)();       ///< inputs that are read without an error
  std::span<const std::string_view> tokens;  ///< tokens with a meaning in the format
};

/// All targets. Formats with checksums have two: the plain file, and its content with checksums
/// computed by the target.
std::span<const Target> targets();

/// Of that name, or nullptr.
const Target* find_target(std::string_view name);

/// How many inputs of all targets were read without an error so far.
std::size_t accepted_inputs();

}  // namespace halfstep::fuzz

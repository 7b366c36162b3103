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
  /// Reads one input and uses what was read. Returns 0; anything but a UserError leaves it, a
  /// std::logic_error where what was read contradicts itself.
  int (*test_one)(const std::uint8_t* bytes, std::size_t size);
  std::vector<std::string> (*seeds)();       ///< inputs that are read without an error
  std::span<const std::string_view> tokens;  ///< what means something in the format
};

/// All targets. Formats with checksums have two: the file as it is, and its content, to which the
/// target adds what makes the checksums right.
std::span<const Target> targets();

/// Of that name, or nullptr.
const Target* find_target(std::string_view name);

/// How many inputs of all targets were read without an error so far.
std::size_t accepted_inputs();

}  // namespace halfstep::fuzz

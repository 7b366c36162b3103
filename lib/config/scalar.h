#pragma once
// Conversion of a scalar's text to the type of the field that reads it. YAML's own type resolution
// (`no` is false, `010` is eight, `1e3` is text) is not used.

#include <cstdint>
#include <optional>
#include <string>

#include "config/node.h"

namespace halfstep::config {

/// A value, or the expected and the actual text ("must be true or false, got 'yes'").
template <class T>
struct Parsed {
  std::optional<T> value;
  std::string error;
};

/// `5`, `-3`, `1e3`, `12.0`: any decimal number with an integral value that fits in 64 bits.
Parsed<std::int64_t> to_integer(const Node& node);

/// A finite decimal number or a fraction of two: `1e-5`, `.5`, `1/255`.
Parsed<double> to_number(const Node& node);

/// `true` or `false`, nothing else.
Parsed<bool> to_bool(const Node& node);

/// Any scalar, with or without quotes.
Parsed<std::string> to_text(const Node& node);

/// A description of a node for messages: "null", "a list", "'yes'", "the string \"5\"".
std::string describe(const Node& node);

/// A short text that to_number reads back as the same value: "0.1", "1e-7", "32768", "1/255".
std::string shortest(double value);

}  // namespace halfstep::config

#pragma once
// Numbers and words as reports write them.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace halfstep::report {

using Json = nlohmann::ordered_json;

/// The value itself, or null. dump() writes the shortest decimal that reads back as the same
/// double, so a float32 shows its whole value: 0.1f is 0.10000000149011612.
Json number(const std::optional<double>& value);

/// A value short enough for a message.
std::string shown(const Json& value);

/// The text with bytes that are not UTF-8 replaced.
std::string utf8(std::string_view text);

/// JSON has no NaN and no infinity: every such number becomes null, and `nonfinite` of the report
/// maps its path ("history.loss[2]") to "nan", "inf" or "-inf".
void name_nonfinite(Json& report);

/// Indented text with a newline at the end; every number on a line of its own only where short
/// lists would not do.
std::string dump(const Json& report);

}  // namespace halfstep::report

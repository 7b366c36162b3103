#pragma once
// Numbers and words as reports write them.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace halfstep::report {

using Json = nlohmann::ordered_json;

/// A number with nine significant digits: what a float holds, without its binary tail.
Json number(double value);
Json number(const std::optional<double>& value);

/// The text with bytes that are not UTF-8 replaced.
std::string utf8(std::string_view text);

/// JSON has no NaN and no infinity: every such number becomes null, and `nonfinite` of the report
/// maps its path ("history.loss[2]") to "nan", "inf" or "-inf".
void name_nonfinite(Json& report);

/// Indented text with a newline at the end; every number on a line of its own only where short
/// lists would not do.
std::string dump(const Json& report);

}  // namespace halfstep::report

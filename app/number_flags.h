#pragma once
// Flags of the command line whose value is a number. The notation is that of numbers in a config,
// and every error names the flag, the numbers that it takes and the one given.

#include <cstdint>
#include <limits>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace halfstep::app {

/// The integers that a flag takes, both ends included.
struct Range {
  std::int64_t min = 0, max = std::numeric_limits<std::int64_t>::max();
};

/// To be called once the command line is read. Errors: UserError(config) with all flags whose value
/// they do not take.
void check_number_flags();

/// A flag with an integer; the help shows the value before it is given as the default, unless it is
/// a std::optional. Value: std::int64_t, or an optional one.
template <class Value>
CLI::Option* add_integer(
    CLI::App& command, const std::string& flag, Value& value, Range range, const std::string& doc);

/// A flag with a time of at least 0 in `unit`, such as "seconds". Value: double, or an optional
/// one.
template <class Value>
CLI::Option* add_time(CLI::App& command,
                      const std::string& flag,
                      Value& value,
                      const std::string& unit,
                      const std::string& doc);

}  // namespace halfstep::app

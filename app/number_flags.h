#pragma once
// Flags of the command line whose value is a number. The notation is that of numbers in a config,
// and every error names the flag, the numbers that it takes and the one given.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace halfstep::app {

/// The integers that a flag takes, both ends included.
struct Range {
  std::int64_t least = 0, most = std::numeric_limits<std::int64_t>::max();
};

/// To be called once the command line is read. Errors: UserError(config) with all flags whose value
/// they do not take.
void check_number_flags();

/// A flag with an integer; the help shows the value before it is given as the default.
CLI::Option* add_integer(CLI::App& command,
                         const std::string& flag,
                         std::int64_t& value,
                         Range range,
                         const std::string& doc);
CLI::Option* add_integer(CLI::App& command,
                         const std::string& flag,
                         std::optional<std::int64_t>& value,
                         Range range,
                         const std::string& doc);

/// A flag with a time of at least 0 in `unit`, such as "seconds".
CLI::Option* add_time(CLI::App& command,
                      const std::string& flag,
                      std::optional<double>& value,
                      const std::string& unit,
                      const std::string& doc);
CLI::Option* add_time(CLI::App& command,
                      const std::string& flag,
                      double& value,
                      const std::string& unit,
                      const std::string& doc);

}  // namespace halfstep::app

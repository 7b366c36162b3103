#include "number_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <type_traits>

#include "config/scalar.h"
#include "core/error.h"
#include "core/printable.h"

namespace halfstep::app {
namespace {

/// The problems of the flags of this call so far.
Diagnostics& problems() {
  static Diagnostics found;
  return found;
}

/// `read` gives the number of a text, if it is one that the flag takes.
template <class Value, class Read>
CLI::Option* add(CLI::App& command,
                 const std::string& flag,
                 Value& value,
                 const std::string& wanted,
                 Read read,
                 const std::string& doc) {
  CLI::Option* option = command.add_option_function<std::string>(
      flag,
      [&value, flag, wanted, read](const std::string& text) {
        const auto number = read(text);
        if (number) {
          value = *number;
        } else {
          problems().error({flag, 0, 0, ""},
                           fmt::format("must be {}, got '{}'", wanted, truncated(text, 100)));
        }
      },
      doc);
  if constexpr (std::is_arithmetic_v<Value>) option->default_str(fmt::format("{}", value));
  return option;
}

}  // namespace

void check_number_flags() { problems().throw_if_any(); }

template <class Value>
CLI::Option* add_integer(
    CLI::App& command, const std::string& flag, Value& value, Range range, const std::string& doc) {
  const auto read = [range](const std::string& text) {
    auto number = config::to_integer(config::Node::scalar(text)).value;
    if (number && (*number < range.min || *number > range.max)) number.reset();
    return number;
  };
  const std::string wanted = fmt::format("a whole number from {} to {}", range.min, range.max);
  return add(command, flag, value, wanted, read, doc)->type_name("INT");
}

template <class Value>
CLI::Option* add_time(CLI::App& command,
                      const std::string& flag,
                      Value& value,
                      const std::string& unit,
                      const std::string& doc) {
  const auto read = [](const std::string& text) {
    auto number = config::to_number(config::Node::scalar(text)).value;
    if (number && *number < 0) number.reset();
    return number;
  };
  const std::string wanted = fmt::format("a number of {} of at least 0", unit);
  return add(command, flag, value, wanted, read, doc)->type_name("NUMBER");
}

template CLI::Option* add_integer(
    CLI::App&, const std::string&, std::int64_t&, Range, const std::string&);
template CLI::Option* add_integer(
    CLI::App&, const std::string&, std::optional<std::int64_t>&, Range, const std::string&);
template CLI::Option* add_time(
    CLI::App&, const std::string&, double&, const std::string&, const std::string&);
template CLI::Option* add_time(
    CLI::App&, const std::string&, std::optional<double>&, const std::string&, const std::string&);

}  // namespace halfstep::app

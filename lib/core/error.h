#pragma once
// The two kinds of error of halfstep: UserError (the config, the data or the command is wrong) and
// InternalError (halfstep is wrong). Both are thrown where found and caught once, in app/.

#include <fmt/core.h>

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace halfstep {

/// A location in a user's file: "file:line:column: config.path". Every part may be absent.
struct Where {
  std::string file;
  int line = 0;
  int column = 0;
  std::string path;

  bool operator==(const Where&) const = default;
};

/// Formats `file:line:column: path`; absent parts are omitted.
std::string to_string(const Where& where);

/// The category of a user error; its value is the exit code of the process.
enum class ErrorKind {
  config = 2,       ///< command line or config
  data = 3,         ///< data set, checkpoint or another file
  numerics = 4,     ///< diverged, or the loss scale is stuck
  target = 5,       ///< a target or gate was not met
  unavailable = 6,  ///< the device or precision is not available here
  memory = 7,       ///< out of memory, or of threads
  ranks = 8,        ///< another rank of the run has ended or does not answer
};

/// One error message with its location. `hint` is an optional suggestion ("did you mean 'units'?").
struct Problem {
  Where where;
  std::string message;
  std::string hint;
};

/// One or more problems of the user's input. what() holds one line per problem.
class UserError : public std::runtime_error {
 public:
  UserError(ErrorKind kind, Where where, std::string message, std::string hint = {});
  UserError(ErrorKind kind, std::vector<Problem> problems);

  ErrorKind kind() const { return kind_; }
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  ErrorKind kind_;
  std::vector<Problem> problems_;
};

/// A violated invariant of halfstep; carries the source location of the check.
class InternalError : public std::logic_error {
 public:
  InternalError(const std::string& message, const std::source_location& location);
};

/// Collects problems so that all of them are reported at once.
class Diagnostics {
 public:
  void error(Where where, std::string message, std::string hint = {});
  bool empty() const { return problems_.empty(); }
  const std::vector<Problem>& problems() const { return problems_; }
  /// The problems file by file (in the order in which the files were met), each from top to bottom.
  std::vector<Problem> in_order() const;
  /// Throws UserError of `kind` with everything collected, in order, if anything was.
  void throw_if_any(ErrorKind kind = ErrorKind::config) const;

 private:
  std::vector<Problem> problems_;
};

/// A format string that remembers where it was written.
template <class... Args>
struct LocatedFormat {
  fmt::format_string<Args...> text;
  std::source_location location;

  template <class S>
  // NOLINTNEXTLINE(google-explicit-constructor): implicit on purpose, a parameter type
  consteval LocatedFormat(const S& s, std::source_location l = std::source_location::current())
      : text(s), location(l) {}
};

/// Throws InternalError with the formatted text unless `condition` holds.
template <class... Args>
void require(bool condition, LocatedFormat<std::type_identity_t<Args>...> text, Args&&... args) {
  if (!condition) {
    throw InternalError(fmt::format(text.text, std::forward<Args>(args)...), text.location);
  }
}

/// The name of `known` that `given` is in other case or has the initials of, else the nearest by
/// edits or the first whose words it contains (`keep` of `keep_checkpoints`), else "".
std::string nearest(std::string_view given, const std::vector<std::string>& known);

/// "did you mean 'x'?" for the nearest known name, or "".
std::string did_you_mean(std::string_view given, const std::vector<std::string>& known);

/// The hint for a name that is not among `known`: the nearest one, then all of them where they are
/// few ("did you mean 'adam'? one of adagrad, adam, sgd"), else `see`, the command that lists them.
std::string choices(std::string_view given,
                    const std::vector<std::string>& known,
                    std::string_view see = {});

}  // namespace halfstep

// The command line: subcommands from a table, and the mapping of errors to exit codes.

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "command.h"
#include "core/error.h"
#include "core/log.h"
#include "core/ranges.h"
#include "environment.h"
#include "number_flags.h"
#include "terminal.h"

namespace {

/// Marks positional arguments as repeatable only where several may follow each other.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_usage(const CLI::Option* option) const override {
    if (option->get_allow_extra_args()) return CLI::Formatter::make_option_usage(option);
    const std::string name = make_option_name(option, true);
    return option->get_required() ? name : fmt::format("[{}]", name);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::size_t dots = text.find(" ...");
    if (!option->get_allow_extra_args() && dots != std::string::npos) text.erase(dots, 4);
    return text;
  }
};

using halfstep::app::Command;
using halfstep::app::command_table;

/// The names of the commands below `command`.
std::vector<std::string> commands_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* below : command.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(below->get_name());
  }
  return names;
}

/// Every flag of `command` with its dashes.
std::vector<std::string> flags_of(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

/// The first argument that looks like a flag but is unknown to `command`, or "". CLI11 reports
/// missing arguments before unknown ones, and suggests no nearest name.
std::string unknown_flag(const CLI::App& command, const std::vector<std::string>& words) {
  const std::vector<std::string> known = flags_of(command);
  for (const std::string& word : words) {
    if (word == "--") break;
    const std::string flag = word.substr(0, word.find('='));
    if (flag.starts_with("--") && !halfstep::contains(known, flag)) {
      return flag;
    }
  }
  return "";
}

/// Renamed flags with a note on the replacement.
constexpr std::array<std::pair<std::string_view, std::string_view>, 1> k_renamed{{
    {"--infer-follows", "it is --tensorflow 2.20+ now"},
}};

/// The suggestion for an unknown flag.
std::string remedy(const CLI::App& command, const std::string& flag) {
  for (const auto& [before, now] : k_renamed) {
    if (flag == before) return std::string(now);
  }
  return halfstep::did_you_mean(flag, flags_of(command));
}

/// A line for each flag that takes one value and was given more.
std::vector<std::string> repeated_flags(const CLI::App& command) {
  std::vector<std::string> lines;
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& values = option->results();
    if (option->get_multi_option_policy() != CLI::MultiOptionPolicy::Throw ||
        std::ssize(values) <= std::max(option->get_items_expected_max(), 1)) {
      continue;
    }
    lines.push_back(fmt::format(
        "{} is given {} times: {}", option->get_name(), values.size(), fmt::join(values, ", ")));
  }
  return lines;
}

void print_error(const std::string& message, const std::string& hint) {
  halfstep::app::write_failure(
      fmt::format("error: {}{}", message, hint.empty() ? "" : fmt::format(" ({})", hint)));
}

/// Output that could not be written is an error. Errors: std::system_error.
void check_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return;
  throw std::system_error(
      errno != 0 ? errno : EIO, std::generic_category(), "cannot write to standard output");
}

/// Opens closed standard streams, so that files opened later do not get their descriptors and
/// receive the output. Each is opened for the wrong direction, so that its use still fails.
void occupy_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) != -1) continue;
    [[maybe_unused]] const int opened =
        ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int usage_error(const CLI::App& app,
                const CLI::ParseError& error,
                const std::vector<std::string>& words) {
  if (error.get_exit_code() == 0) {  // --help, --version
    app.exit(error);
    std::cout.flush();
    check_output();
    return 0;
  }
  constexpr int k_usage = static_cast<int>(halfstep::ErrorKind::config);
  if (words.empty()) {
    halfstep::write_to_stderr(app.help());
    return k_usage;
  }
  const CLI::App* command = &app;
  std::string path = "halfstep";
  std::size_t depth = 0;
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    path += " " + command->get_name();
    ++depth;
  }
  const std::string flag = unknown_flag(*command, words);
  const std::vector<std::string> commands = commands_of(*command);
  const std::vector<std::string> repeated = repeated_flags(*command);
  if (!commands.empty() && depth < words.size() && !words[depth].starts_with("-")) {
    print_error(fmt::format("unknown command '{}'", words[depth]),
                halfstep::did_you_mean(words[depth], commands));
  } else if (!flag.empty()) {
    print_error(fmt::format("{} has no flag {}", path, flag), remedy(*command, flag));
  } else if (!repeated.empty()) {
    for (const std::string& line : repeated) print_error(line, "");
  } else {
    const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
    const bool configs = command->get_option_no_throw("--config") != nullptr;
    print_error(error.what(), extra && configs ? "further configs follow -c" : "");
  }
  halfstep::write_to_stderr(
      fmt::format("{} --help lists {}\n", path, commands.empty() ? "flags" : "commands"));
  return k_usage;
}

/// Where memory runs out in a destructor or on a thread, main() catches nothing.
[[noreturn]] void end_unhandled() {
  try {
    if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::bad_alloc&) {
    halfstep::write_to_stderr("error: out of memory\n");
    ::_exit(static_cast<int>(halfstep::ErrorKind::memory));
  } catch (const std::exception& error) {
    halfstep::write_to_stderr("internal error: ");
    halfstep::write_to_stderr(error.what());
    halfstep::write_to_stderr("\n");
  }
  std::abort();
}

int run(int argc, char** argv) {
  CLI::App app("Trains neural networks in mixed precision and tells the truth about it.",
               "halfstep");
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "help of all commands");
  app.set_version_flag("--version", halfstep::app::version_text, "print the version and exit");
  std::function<int()> chosen;
  for (const Command* command : command_table()) {
    CLI::App* sub = app.add_subcommand(std::string(command->name), std::string(command->doc));
    std::function<int()> action = command->declare(*sub);
    sub->final_callback([&chosen, action = std::move(action)] {
      if (!chosen) chosen = action;
    });
  }
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, words);
  }
  halfstep::set_log_level(halfstep::app::environment_log_level());
  halfstep::app::check_number_flags();
  const int exit_code = chosen();
  check_output();
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  using halfstep::app::write_failure;
  occupy_standard_streams();
  std::set_terminate(end_unhandled);
  // A closed pipe, as in `2>&1 | head`, must not end a run.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(argc, argv);
  } catch (const halfstep::UserError& error) {
    write_failure(error.what());
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    write_failure("error: out of memory");
    return static_cast<int>(halfstep::ErrorKind::memory);
  } catch (const std::system_error& error) {
    // The reader of the output has closed the pipe; exit status as a shell reports SIGPIPE.
    if (error.code() == std::errc::broken_pipe) return 128 + SIGPIPE;
    // The system failed: no space left, no memory.
    write_failure(fmt::format("error: {}", error.what()));
    const bool memory = error.code() == std::errc::not_enough_memory;
    return static_cast<int>(memory ? halfstep::ErrorKind::memory : halfstep::ErrorKind::data);
  } catch (const std::exception& error) {
    write_failure(fmt::format(
        "internal error: {}\nThis is a bug in halfstep; please report it with the config.",
        error.what()));
    return 1;
  }
}

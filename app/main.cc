// The command line: subcommands from a table, and the one place where errors become exit codes.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "command.h"
#include "core/error.h"

namespace {

using halfstep::app::Command;
using halfstep::app::command_table;

/// CLI11 knows no nearest word; we do.
std::string suggestion(const std::vector<std::string>& words) {
  std::vector<std::string> known;
  for (const Command* command : command_table()) known.emplace_back(command->name);
  for (const std::string& word : words) {
    if (!word.starts_with("-")) return halfstep::did_you_mean(word, known);
  }
  return "";
}

int usage_error(const CLI::App& app,
                const CLI::ParseError& error,
                const std::vector<std::string>& words,
                bool any_command) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help
  if (!any_command && !words.empty() && !words[0].starts_with("-")) {
    const std::string hint = suggestion(words);
    fmt::print(
        stderr, "error: unknown command '{}'{}\n", words[0], hint.empty() ? "" : " (" + hint + ")");
  } else {
    fmt::print(stderr, "error: {}\n", error.what());
  }
  fmt::print(stderr, "halfstep --help lists commands and flags\n");
  return static_cast<int>(halfstep::ErrorKind::config);
}

int run(int argc, char** argv) {
  CLI::App app("Trains neural networks in mixed precision and tells the truth about it.",
               "halfstep");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "help of all commands");
  std::function<int()> chosen;
  bool any_command = false;
  std::vector<std::function<int()>> actions;
  for (const Command* command : command_table()) {
    CLI::App* sub = app.add_subcommand(std::string(command->name), std::string(command->doc));
    std::function<int()> action = command->declare(*sub);
    sub->preparse_callback([&any_command](std::size_t) { any_command = true; });
    sub->final_callback([&chosen, action = std::move(action)] {
      if (!chosen) chosen = action;
    });
  }
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, words, any_command);
  }
  return chosen();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const halfstep::UserError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error: out of memory\n");
    return static_cast<int>(halfstep::ErrorKind::memory);
  } catch (const std::exception& error) {
    fmt::print(stderr,
               "internal error: {}\nThis is a bug in halfstep; please report it with the config.\n",
               error.what());
    return 1;
  }
}

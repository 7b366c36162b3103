#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ranges.h"
#include "reference/print.h"
#include "report/context.h"

namespace halfstep::app {
namespace {

std::vector<const CLI::App*> commands_below(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App*) { return true; });
}

/// Calls `visit` with every command and its full name, such as "runs list"; "" for the program.
void each_command(const CLI::App& command,
                  const std::string& words,
                  const std::function<void(const CLI::App&, const std::string&)>& visit) {
  visit(command, words);
  for (const CLI::App* below : commands_below(command)) {
    each_command(
        *below, words.empty() ? below->get_name() : words + " " + below->get_name(), visit);
  }
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

/// The values that an option accepts, where they are listed: CLI11 appends them to the type, as in
/// TEXT:{auto,bar,lines,none}.
std::vector<std::string> accepted_values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{'), end = type.find('}');
  std::vector<std::string> words;
  if (begin == std::string::npos || end == std::string::npos) return words;
  for (std::size_t at = begin + 1; at < end;) {
    const std::size_t comma = std::min(type.find(',', at), end);
    words.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

/// The placeholder of an option's value: VALUE, or the accepted values with bars between.
std::string value_of(const CLI::Option& option) {
  if (option.get_items_expected_max() == 0) return "";
  const std::vector<std::string> words = accepted_values(option);
  return words.empty() ? "VALUE" : fmt::format("{}", fmt::join(words, "|"));
}

// Roff.

/// Text that roff shows as it is.
std::string roff(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else {
      escaped += c;
    }
  }
  // At the beginning of a line these begin a request.
  if (escaped.starts_with('.') || escaped.starts_with('\'')) escaped.insert(0, "\\&");
  return escaped;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string option_entry(const CLI::Option& option) {
  auto names = mapped<std::string>(flags_of(option), bold);
  if (names.empty()) names.push_back(italic(option.get_name(true)));
  const std::string value = value_of(option);
  const bool positional = !option.nonpositional();
  return fmt::format(".TP\n{}{}\n{}\n",
                     fmt::join(names, ", "),
                     value.empty() || positional ? "" : " " + italic(value),
                     roff(option.get_description()));
}

std::string synopsis(const CLI::App& command, const std::string& words) {
  std::string line = bold(words.empty() ? "halfstep" : "halfstep " + words);
  if (!commands_below(command).empty()) line += " " + italic("COMMAND");
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = italic(option->get_name(true, false));
    line += option->get_required() ? " " + name : fmt::format(" [{}]", name);
  }
  return line + " [" + italic("OPTIONS") + "]";
}

// Bash.

std::string in_quotes(const std::vector<std::string>& words) {
  return fmt::format("'{}'", fmt::join(words, " "));
}

constexpr std::string_view k_bash_start =
    R"(# Completion of halfstep for bash, written by `halfstep completion bash`.
_halfstep() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local path='' words='' flags='' i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path|${COMP_WORDS[i]}" in
)";
constexpr std::string_view k_bash_end = R"(  esac
  if [[ $current == -* ]]; then words=$flags; fi
  # Without a word that fits, bash completes names of files.
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _halfstep halfstep
)";

}  // namespace

Topic commands_topic(const CLI::App& program) {
  Topic topic{.name = "commands",
              .title = "Commands",
              .doc = "what the program does",
              .text =
                  "`halfstep COMMAND --help` lists the flags of a command, and `halfstep help "
                  "man` prints a manual page with all of them."};
  each_command(program, "", [&](const CLI::App& command, const std::string& words) {
    if (words.empty()) return;
    topic.entries.push_back({.kind = kinds::k_command,
                             .name = "halfstep " + words,
                             .doc = command.get_description(),
                             .brief = true});
  });
  return topic;
}

Topic exit_codes_topic() {
  Topic topic{.name = "exit_codes",
              .title = "Exit codes",
              .doc = "the status that the program ends with",
              .text = "The exit status of every command; reports hold it as `exit_code`."};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> k_codes{{
      {"0", "Done."},
      {"1", "An error in halfstep."},
      {"2",
       "The command line or the config is wrong: every problem is listed, with file, line and "
       "column."},
      {"3", "Data, a checkpoint or another file is missing or wrong."},
      {"4", "Numerics: the run diverged, or its loss scale is stuck at the minimum."},
      {"5", "A target was not reached, or a condition of `--fail-if` is true."},
      {"6", "The device or precision asked for is not available here."},
      {"7", "Out of memory, or of threads."},
      {"8",
       "Of a run of several ranks: another rank ended or did not answer. A checkpoint of the last "
       "step that all ranks did is written, unless that was during validation or on GPUs, and the "
       "job can be requeued: it continues from the newest checkpoint."},
      {"75",
       "Asked to leave (SIGTERM, or the signal in `slurm.signal`): a checkpoint is written, and "
       "the job can be requeued."},
      {"130", "Interrupted: a checkpoint is written."},
      {"143", "Ended by SIGTERM before a checkpoint could be written."},
  }};
  for (const auto& [code, meaning] : k_codes) {
    topic.entries.push_back({.kind = kinds::k_exit_code,
                             .name = std::string(code),
                             .doc = std::string(meaning),
                             .brief = true});
  }
  return topic;
}

std::string manual_page(const CLI::App& program) {
  std::string page = fmt::format(
      ".TH HALFSTEP 1 \"\" \"{}\" \"User Commands\"\n.SH NAME\nhalfstep \\- {}\n.SH SYNOPSIS\n{}\n"
      ".SH DESCRIPTION\n{}\n.SH COMMANDS\n",
      roff("halfstep " + std::string(report::build_info().version)),
      "trains neural networks in mixed precision and compares precisions",
      synopsis(program, ""),
      roff(
          "halfstep trains networks that a YAML file describes in float32, mixed bfloat16 or mixed "
          "float16, or lets an automatic graph rewrite choose the dtype of each op. It reports "
          "step time, accuracy and skipped steps as JSON, compares precisions with confidence "
          "intervals, and explains the dtype of every op."));
  each_command(program, "", [&](const CLI::App& command, const std::string& words) {
    if (words.empty()) return;
    page += fmt::format(".SS \"halfstep {}\"\n{}\n.PP\n{}\n",
                        words,
                        synopsis(command, words),
                        roff(command.get_description()));
    for (const CLI::Option* option : command.get_options()) {
      if (option != command.get_help_ptr()) page += option_entry(*option);
    }
  });
  page += ".SH EXIT STATUS\n";
  for (const Entry& code : exit_codes_topic().entries) {
    page += fmt::format(".TP\n.B {}\n{}\n", code.name, roff(code.doc));
  }
  page +=
      fmt::format(".SH SEE ALSO\n{} lists the layers, losses, optimizers and keys of a config.\n",
                  bold("halfstep help"));
  return page;
}

std::string bash_completion(const CLI::App& program) {
  std::string steps, words, values;
  each_command(program, "", [&](const CLI::App& command, const std::string& path) {
    std::vector<std::string> names, flags;
    for (const CLI::App* below : commands_below(command)) {
      names.push_back(below->get_name());
      steps += fmt::format("      '{}|{}') path='{}' ;;\n",
                           path,
                           below->get_name(),
                           path.empty() ? below->get_name() : path + " " + below->get_name());
    }
    for (const CLI::Option* option : command.get_options()) {
      const std::vector<std::string> all = flags_of(*option);
      flags.insert(flags.end(), all.begin(), all.end());
      const std::vector<std::string> choices = accepted_values(*option);
      if (choices.empty()) continue;
      for (const std::string& flag : all) {
        values += fmt::format("    '{}|{}') words={} ;;\n", path, flag, in_quotes(choices));
      }
      // A positional argument with certain values, such as the shell's name.
      if (option->get_positional()) names.insert(names.end(), choices.begin(), choices.end());
    }
    words += fmt::format("    '{}')\n      words={}\n      flags={}\n      ;;\n",
                         path,
                         in_quotes(names),
                         in_quotes(flags));
  });
  return fmt::format(
      "{}{}    esac\n  done\n  case \"$path\" in\n{}  esac\n  case \"$path|$previous\" in\n{}{}",
      k_bash_start,
      steps,
      words,
      values,
      k_bash_end);
}

}  // namespace halfstep::app

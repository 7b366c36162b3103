#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "command.h"
#include "core/error.h"
#include "reference/print.h"
#include "reference/reference.h"

namespace halfstep::app {
namespace {

struct HelpFlags {
  const CLI::App* program = nullptr;
  std::vector<std::string> words;
  bool json = false;
  bool markdown = false;
};

/// The command named by the arguments, or nullptr.
const CLI::App* command_named(const HelpFlags& state) {
  const CLI::App* command = state.program;
  for (const std::string& word : state.words) {
    const CLI::App* below = nullptr;
    for (const CLI::App* each : command->get_subcommands([](const CLI::App*) { return true; })) {
      if (each->get_name() == word) below = each;
    }
    if (below == nullptr) return nullptr;
    command = below;
  }
  return command;
}

/// The help of a command as `--help` prints it.
std::string help_of(const HelpFlags& state, const CLI::App& command) {
  std::string path = state.program->get_name();
  for (std::size_t i = 0; i + 1 < state.words.size(); ++i) path += " " + state.words[i];
  return command.help(path);
}

int list_topics(const HelpFlags& state, const std::vector<Topic>& topics) {
  if (state.json) {
    report::ReferenceReport report;
    for (const Topic& topic : topics) {
      report::ReferenceEntry& entry = report.entries.emplace_back();
      entry.kind = "topic";
      entry.name = topic.name;
      entry.doc = topic.doc;
    }
    fmt::print("{}", report::dump(to_json(report)));
    return 0;
  }
  fmt::print("Topics:\n");
  for (const Topic& topic : topics) fmt::print("  {:<14} {}\n", topic.name, topic.doc);
  fmt::print(
      "\nhalfstep help TOPIC prints all of a topic; the pages in docs/ hold the same.\n"
      "halfstep help NAME prints one layer, loss, optimizer, data set, ... or key of a config:\n"
      "  halfstep help conv2d\n"
      "  halfstep help optimizer.adam\n"
      "  halfstep help training.batch_size\n"
      "halfstep help COMMAND lists the flags of a command.\n");
  return 0;
}

[[noreturn]] void unknown(const std::string& word, const std::vector<Topic>& topics) {
  std::vector<std::string> known = reference_names(topics);
  for (const Command* command : command_table()) known.emplace_back(command->name);
  const std::string hint = did_you_mean(word, known);
  throw UserError(ErrorKind::config,
                  {},
                  fmt::format("nothing is known about '{}'", word),
                  hint.empty() ? "'halfstep help' lists the topics" : hint);
}

void print_entries(const HelpFlags& state,
                   const std::string& word,
                   const std::vector<Entry>& entries) {
  if (state.json) {
    fmt::print("{}", report::dump(to_json(reference_report(word, "", entries))));
    return;
  }
  bool first = true;
  for (const Entry& entry : entries) {
    fmt::print("{}{}",
               first || state.markdown ? "" : "\n",
               state.markdown ? entry_as_markdown(entry) : entry_as_text(entry));
    first = false;
  }
}

int help(const HelpFlags& state) {
  if (state.words == std::vector<std::string>{"man"}) {
    fmt::print("{}", manual_page(*state.program));
    return 0;
  }
  const std::vector<Topic> topics = reference_topics(*state.program);
  if (state.words.empty()) return list_topics(state, topics);
  const CLI::App* command = command_named(state);
  const std::string word = fmt::format("{}", fmt::join(state.words, " "));
  // `exit codes` and `exit-codes` are the topic exit_codes.
  std::string topic_name = word;
  for (char& c : topic_name) c = c == ' ' || c == '-' ? '_' : c;
  for (const Topic& topic : topics) {
    if (topic.name != topic_name) continue;
    if (state.json) {
      fmt::print("{}",
                 report::dump(to_json(reference_report(topic.name, topic.text, topic.entries))));
    } else if (state.markdown) {
      fmt::print("{}", topic_as_markdown(topic));
    } else {
      fmt::print("{}", topic_as_text(topic));
      if (command != nullptr) fmt::print("The command: halfstep {} --help\n", word);
    }
    return 0;
  }
  const std::vector<Entry> entries = find_entries(topics, word);
  if (!entries.empty()) {
    print_entries(state, word, entries);
    if (command != nullptr && !state.json) fmt::print("\nThe command: halfstep {} --help\n", word);
    return 0;
  }
  if (command == nullptr) unknown(word, topics);
  if (state.json || state.markdown) {
    throw UserError(ErrorKind::config, {}, "the help of a command is plain text");
  }
  fmt::print("{}", help_of(state, *command));
  return 0;
}

std::function<int()> declare_help(CLI::App& command) {
  const auto state = std::make_shared<HelpFlags>();
  state->program = command.get_parent();
  command.add_option("TOPIC",
                     state->words,
                     "a topic, a layer or the like, a key of a config, a command, a warning's "
                     "code, or man for the manual page in roff");
  CLI::Option* json = command.add_flag("--json", state->json, "print JSON");
  command.add_flag("--markdown", state->markdown, "print a page in Markdown")->excludes(json);
  return [state] { return help(*state); };
}

}  // namespace

extern const Command k_help{"help", "explain a layer, loss, ... or key of a config", declare_help};

}  // namespace halfstep::app

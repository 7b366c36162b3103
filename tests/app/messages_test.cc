// Output on stderr and in --log-file: colors, progress, and the order of both.

#include <doctest/doctest.h>

#include <ostream>
#include <string_view>

#include "app/small_run.h"

namespace halfstep::test {
TEST_CASE("messages: colours are for terminals and for those who ask") {
  const TemporaryDirectory directory;
  write_config(directory);
  struct Row {
    std::vector<std::string> variables;
    std::string color;
    bool coloured;
  };
  const Row rows[] = {{{}, "auto", false},
                      {{}, "always", true},
                      {{"FORCE_COLOR=1"}, "auto", true},
                      {{"FORCE_COLOR=0"}, "auto", false},
                      {{"FORCE_COLOR=1"}, "never", false},
                      {{"FORCE_COLOR=1", "NO_COLOR=1"}, "auto", false},
                      {{"NO_COLOR=1"}, "always", true}};
  for (const Row& row : rows) {
    std::vector<std::string> words{"env", "-u", "NO_COLOR", "-u", "FORCE_COLOR"};
    words.insert(words.end(), row.variables.begin(), row.variables.end());
    const std::vector<std::string> program =
        halfstep_words({"train", "run.yaml", "--epochs", "0", "--color", row.color});
    words.insert(words.end(), program.begin(), program.end());
    const Finished end = Process(words, directory.path()).wait();
    CAPTURE(row.color);
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(holds(end.err, "\x1b[1;31merror:\x1b[0m") == row.coloured);
    CHECK(holds(end.err, "\x1b") == row.coloured);
  }
}

TEST_CASE("messages: every line pushes the progress bar aside, and the bar fits a line") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.precision = "{policy: mixed_float16, loss_scale: {initial: 1073741824}}";
  write_config(directory, run);
  const Finished end = train(directory, "run", {"--progress", "bar"});
  REQUIRE(end.exit_code == 0);
  CHECK(holds(end.err, "skipped: Inf first in"));
  constexpr std::string_view k_clear = "\r\x1b[K";
  // Text after a line of progress, up to the next line break, begins by clearing it. A line of 80
  // characters has no space for the bar itself; the steps are always in it.
  constexpr std::string_view k_steps = "/6  ";
  std::string_view text = end.err;
  std::size_t bars = 0;
  for (std::size_t at = text.find(k_steps); at != std::string_view::npos; at = text.find(k_steps)) {
    text.remove_prefix(at);
    const std::size_t cleared = text.find(k_clear);
    REQUIRE(cleared != std::string_view::npos);
    CHECK(text.substr(0, cleared).find('\n') == std::string_view::npos);
    text.remove_prefix(cleared);
    ++bars;
  }
  CHECK(bars >= 2);
  for (std::size_t at = 0; (at = end.err.find(k_steps, at)) != std::string::npos; ++at) {
    const std::size_t start = end.err.rfind('K', at) + 1;
    CHECK(end.err.find('\r', at) - start < 80);
  }
}

TEST_CASE("messages: the log file has what stderr has, without colours and bars") {
  const TemporaryDirectory directory;
  write_config(directory);
  const std::vector<std::string> flags{
      "--log-file", "run.log", "--color", "always", "--progress", "bar"};
  REQUIRE(train(directory, "run", flags).exit_code == 0);
  CHECK(train(directory, "run", flags).exit_code == 2);
  const std::string log = read_text(directory.file("run.log"));
  CAPTURE(log);
  CHECK(holds(log, "epoch 1/2  6 steps"));
  CHECK(holds(log, "epoch 2/2  6 steps"));
  CHECK(holds(log, "--run-dir: error: run already contains a run"));
  CHECK(!holds(log, "\x1b"));
  CHECK(!holds(log, "\r"));
}

TEST_CASE("messages: a run ends well although nobody can read its messages") {
  const TemporaryDirectory directory;
  write_config(directory);
  int number = 0;
  for (const std::string_view redirection :
       {"2>&-", "2>/dev/full", "2>&1 >/dev/null | true", "--log-file /dev/full"}) {
    CAPTURE(redirection);
    const std::string name = "run" + std::to_string(++number);
    std::string command = "set -o pipefail;";
    for (const std::string& word : halfstep_words(train_arguments(name))) command += " " + word;
    const Finished end =
        Process({"bash", "-c", command + " " + std::string(redirection)}, directory.path()).wait();
    CAPTURE(end.err);
    CHECK(end.exit_code == 0);
    CHECK(report_of(directory, name).at("status") == "completed");
  }
}

TEST_CASE("messages: output that does not arrive is an error") {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "run").exit_code == 0);
  const std::string program = halfstep_words({})[0];
  for (const std::string_view command :
       {"--help", "--version", "report export run --format csv", "report show run"}) {
    for (const std::string_view redirection : {">/dev/full", ">&-"}) {
      CAPTURE(command);
      CAPTURE(redirection);
      const std::string line =
          program + " " + std::string(command) + " " + std::string(redirection);
      const Finished end = Process({"sh", "-c", line}, directory.path()).wait();
      CAPTURE(end.err);
      CHECK(end.exit_code == 3);
      CHECK(holds(end.err, "cannot write to standard output"));
    }
  }
}

}  // namespace halfstep::test

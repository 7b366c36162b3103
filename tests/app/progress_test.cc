// Progress on stderr: one line that is redrawn on a terminal, plain lines elsewhere.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <ostream>
#include <sstream>
#include <string_view>

#include "app/small_run.h"
#include "support/paths.h"

namespace halfstep::test {
namespace {

/// The output of halfstep on a terminal of `columns` columns: all of stdout and stderr.
Finished on_terminal(const TemporaryDirectory& directory, int columns, const std::string& words) {
  const std::string command = "stty cols " + std::to_string(columns) + "; TERM=xterm exec " +
                              program().string() + " " + words;
  return Process({"script", "-qec", command, "/dev/null"}, directory.path()).wait();
}

/// Every state of the line of progress.
std::vector<std::string> redrawn(const std::string& text) {
  constexpr std::string_view k_clear = "\r\x1b[K";
  std::vector<std::string> lines;
  for (std::size_t at = text.find(k_clear); at != std::string::npos;) {
    const std::size_t begin = at + k_clear.size();
    at = text.find(k_clear, begin);
    const std::string line = text.substr(begin, at == std::string::npos ? at : at - begin);
    if (!line.empty() && line.find('\n') == std::string::npos) lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> lines_with(const std::string& text, std::string_view part) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (holds(line, part)) found.push_back(line);
  }
  return found;
}

/// The lines that remain on the terminal, each after its last redraw.
std::vector<std::string> kept_lines(const std::string& text, std::string_view start) {
  std::vector<std::string> kept;
  for (std::string line : lines_with(text, start)) {
    if (const std::size_t at = line.rfind("\x1b[K"); at != std::string::npos) line.erase(0, at + 3);
    while (line.ends_with('\r')) line.pop_back();
    if (line.starts_with(start)) kept.push_back(line);
  }
  return kept;
}

SmallRun mixed_run() {
  SmallRun run = long_run();
  // Redrawn ten times a second: long enough for some lines on a much faster machine.
  run.training = "{epochs: 8, batch_size: 8}";
  // The first steps overflow until the scale has fallen.
  run.precision = "{policy: mixed_float16, loss_scale: {initial: 1e9}}";
  return run;
}

}  // namespace

TEST_CASE("progress: a terminal shows rate, time, rate of learning, scale and skipped steps") {
  const TemporaryDirectory directory;
  write_config(directory, mixed_run());
  const Finished end =
      on_terminal(directory, 200, "train run.yaml --threads 1 --run-dir run --progress auto");
  CAPTURE(end.out);
  REQUIRE(end.exit_code == 0);
  const std::vector<std::string> lines = redrawn(end.out);
  REQUIRE(lines.size() > 1);
  // The first lines of an epoch lack some of them, on a busy machine most lines.
  const auto shows_all = [](const std::string& line) {
    constexpr std::array<std::string_view, 11> k_parts{"epoch ",
                                                       "[=",
                                                       "/1024",
                                                       "loss ",
                                                       "accuracy ",
                                                       " samples/s",
                                                       " elapsed",
                                                       "ETA 0:",
                                                       "lr 0.001",
                                                       "scale ",
                                                       "skipped "};
    return std::ranges::all_of(k_parts, [&](std::string_view part) { return holds(line, part); });
  };
  CHECK(std::ranges::any_of(lines, shows_all));
  for (const std::string& any : lines) CHECK(any.size() < 200);
  // The line of an epoch stays.
  CHECK(holds(end.out, "epoch 1/8  1024 steps"));
}

TEST_CASE("progress: a narrow terminal keeps what matters most in one line") {
  const TemporaryDirectory directory;
  write_config(directory, mixed_run());
  const Finished end = on_terminal(directory, 60, "train run.yaml --threads 1 --run-dir run");
  CAPTURE(end.out);
  REQUIRE(end.exit_code == 0);
  const std::vector<std::string> lines = redrawn(end.out);
  REQUIRE(lines.size() > 1);
  for (const std::string& line : lines) CHECK(line.size() < 60);
  const std::string& line = lines[lines.size() / 2];
  CAPTURE(line);
  for (std::string_view part : {"epoch ", "/1024", "loss ", "ETA 0:", "skipped "}) {
    CHECK(holds(line, part));
  }
  CHECK_FALSE(holds(line, "[="));
}

TEST_CASE("progress: the lines of epochs and of compared runs fit the terminal, the log has all") {
  const TemporaryDirectory directory;
  write_config(directory);
  struct Case {
    int columns;
    std::string_view epoch_has, epoch_lacks, run_has, run_lacks;
  };
  for (const Case& c : {Case{40, "val_accuracy ", "  loss ", "float32", " steps"},
                        Case{60, "  loss ", "ms/step", "test acc ", " steps"},
                        Case{80, "  val_loss ", " steps ", "ms/step", "epoch"},
                        Case{120, " ms/step", " steps ", " steps", "epoch"}}) {
    CAPTURE(c.columns);
    const std::string name = "run" + std::to_string(c.columns);
    const Finished trained =
        on_terminal(directory, c.columns, "train run.yaml --threads 1 --run-dir " + name);
    CAPTURE(trained.out);
    REQUIRE(trained.exit_code == 0);
    const std::vector<std::string> epochs = kept_lines(trained.out, "epoch ");
    REQUIRE(epochs.size() == 2);
    for (const std::string& line : epochs) {
      CAPTURE(line);
      CHECK(static_cast<int>(line.size()) < c.columns);
      CHECK(holds(line, c.epoch_has));
      CHECK_FALSE(holds(line, c.epoch_lacks));
    }
    for (const std::string& line : redrawn(trained.out)) {
      CHECK(static_cast<int>(line.size()) < c.columns);
    }
    const std::vector<std::string> logged =
        lines_with(read_text(directory.path() / name / "log.txt"), "epoch ");
    REQUIRE(logged.size() == 2);
    CHECK(holds(logged[0], " samples/s"));
    CHECK(holds(logged[0], " val_loss "));

    const Finished compared =
        on_terminal(directory,
                    c.columns,
                    "compare run.yaml --threads 1 --seeds 1 --policies float32,mixed_bfloat16 "
                    "--no-run-dir");
    CAPTURE(compared.out);
    REQUIRE(compared.exit_code == 0);
    const std::vector<std::string> runs = kept_lines(compared.out, "seed 7  ");
    REQUIRE(runs.size() == 2);
    for (const std::string& line : runs) CHECK(static_cast<int>(line.size()) < c.columns);
    CHECK(holds(runs[0], c.run_has));
    CHECK_FALSE(holds(runs[0], c.run_lacks));
    for (const std::string& line : redrawn(compared.out)) {
      CHECK(static_cast<int>(line.size()) < c.columns);
    }
  }
}

TEST_CASE("progress: redirected output has plain lines, at most one in the time between two") {
  const TemporaryDirectory directory;
  write_config(directory, mixed_run());
  const Finished quiet = train(directory, "quiet");
  CAPTURE(quiet.err);
  REQUIRE(quiet.exit_code == 0);
  CHECK_FALSE(holds(quiet.err, "\r"));
  CHECK_FALSE(holds(quiet.err, "\x1b"));
  // Far less than 30 s: the epochs' lines alone.
  CHECK(lines_with(quiet.err, "/1024").empty());
  CHECK(lines_with(quiet.err, "epoch ").size() == 8);
  CHECK(lines_with(quiet.err, " samples/s").size() == 8);

  // An epoch takes 30 ms on a fast processor, and its own line starts the time anew.
  const Finished often = train(directory, "often", {"--progress-every", "0.002"});
  CAPTURE(often.err);
  REQUIRE(often.exit_code == 0);
  CHECK_FALSE(holds(often.err, "\r"));
  const std::vector<std::string> lines = lines_with(often.err, "/1024");
  REQUIRE(lines.size() > 1);
  CHECK(static_cast<double>(lines.size()) <= often.seconds / 0.002);
  CHECK(lines.back().starts_with("epoch "));
  for (std::string_view part :
       {"loss ", " samples/s", " elapsed", "lr 0.001", "scale ", "skipped "}) {
    CAPTURE(part);
    CHECK(holds(lines.back(), part));
  }
  CHECK(train(directory, "none", {"--progress", "none"}).err.find("epoch ") == std::string::npos);
  CHECK(train(directory, "bad", {"--progress-every", "-1"}).exit_code == 2);
}

TEST_CASE("progress: a comparison shows seed, policy and the time left of the whole") {
  const TemporaryDirectory directory;
  SmallRun run = long_run();
  run.training = "{epochs: 3, batch_size: 8}";
  write_config(directory, run);
  const std::string words =
      "compare run.yaml --threads 1 --seeds 2 --policies float32,mixed_bfloat16 --no-run-dir";
  const Finished end = on_terminal(directory, 100, words);
  CAPTURE(end.out);
  REQUIRE(end.exit_code == 0);
  const std::vector<std::string> lines = redrawn(end.out);
  REQUIRE(lines.size() > 1);
  const auto any = [&](std::string_view part) {
    return std::any_of(
        lines.begin(), lines.end(), [&](const std::string& line) { return holds(line, part); });
  };
  for (std::string_view part : {"seed 1/2  ", "seed 2/2  ", "/3072", " elapsed", "ETA 0:"}) {
    CAPTURE(part);
    CHECK(any(part));
  }
  // Which policy has its turn when a line is due is left to the clock.
  CHECK((any("  mixed_bfloat16  step ") || any("  float32  step ")));

  const Finished plain = halfstep({"compare",
                                   "run.yaml",
                                   "--threads",
                                   "1",
                                   "--seeds",
                                   "2",
                                   "--policies",
                                   "float32,mixed_bfloat16",
                                   "--no-run-dir"},
                                  directory.path());
  REQUIRE(plain.exit_code == 0);
  CHECK_FALSE(holds(plain.err, "\r"));
  CHECK(lines_with(plain.err, "seed 1/2").size() == 1);
  CHECK(lines_with(plain.err, "seed 2/2").size() == 1);
}

}  // namespace halfstep::test

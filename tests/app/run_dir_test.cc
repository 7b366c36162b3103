// What a run leaves in its directory besides the report.

#include <doctest/doctest.h>

#include <filesystem>
#include <ostream>

#include "app/small_run.h"

namespace halfstep::test {

TEST_CASE("run directory: configs stand there as given, and resolved") {
  const TemporaryDirectory directory;
  const std::string text = "# my run\n" + SmallRun().text();
  write_text(directory.file("run.yaml"), text);
  const std::string more = "training: {max_steps: 2}  # short\n";
  write_text(directory.file("more.yaml"), more);
  const Finished end = halfstep(train_arguments("run", {"-c", "more.yaml"}), directory.path());
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(read_text(directory.file("run/config.yaml")) == text);
  CHECK(read_text(directory.file("run/config.2.yaml")) == more);
  CHECK_FALSE(std::filesystem::exists(directory.file("run/config.3.yaml")));
  const std::string command = read_text(directory.file("run/command.txt"));
  CHECK(command.find("train run.yaml --run-dir run --threads 1 -c more.yaml\n") !=
        std::string::npos);
  // What was said before there was a directory is there too.
  const std::string log = read_text(directory.file("run/log.txt"));
  CHECK(log.starts_with("device: "));
  CHECK(log.find("epoch 1/") != std::string::npos);

  const Finished again =
      halfstep({"train", "run/config.resolved.yaml", "--run-dir", "again", "--threads", "1"},
               directory.path());
  CAPTURE(again.err);
  REQUIRE(again.exit_code == 0);
  CHECK(final_hash(directory, "again") == final_hash(directory, "run"));
}

TEST_CASE("command line: without a config the message says what one is") {
  const TemporaryDirectory directory;
  for (const std::vector<std::string>& words : {std::vector<std::string>{"train"},
                                                {"bench"},
                                                {"eval", "--checkpoint", "x"},
                                                {"config", "check"},
                                                {"config", "show"},
                                                {"model", "summary"}}) {
    CAPTURE(words[0]);
    const Finished end = halfstep(words, directory.path());
    CAPTURE(end.err);
    CHECK(end.exit_code == 2);
    CHECK(end.err.find("CONFIG: error: is missing") != std::string::npos);
    CHECK(end.err.find("halfstep config init") != std::string::npos);
  }
}

}  // namespace halfstep::test

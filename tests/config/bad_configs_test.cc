// Each config in bad/ is rejected with the first line of the error file of the same name.

#include <doctest/doctest.h>

#include "support.h"

namespace halfstep::config::testing {

TEST_CASE("bad configs: each is refused with its expected first line") {
  const std::vector<std::filesystem::path> files = files_of("bad");
  CHECK(files.size() > 80);
  for (const std::filesystem::path& file : files) {
    const std::string name = file.filename().string();
    CAPTURE(name);
    const std::vector<std::string> found = check_text(contents(file), name);
    const std::vector<std::string> expected =
        lines(contents(std::filesystem::path(file).replace_extension(".expected")));
    REQUIRE(found.size() > 0);
    REQUIRE(expected.size() == 1);
    CHECK(found[0] == expected[0]);
  }
}

TEST_CASE("bad configs: all problems are reported at once, in the order of the file") {
  const std::vector<std::string> found =
      check_text(contents(folder() / "bad" / "several_problems.yaml"), "several_problems.yaml");
  const std::vector<std::string> expected{
      "several_problems.yaml:1:39: data.validation_split: error: must be below 1, got 2",
      "several_problems.yaml:6:32: error: duplicate key 'units' (first at line 6)",
      "several_problems.yaml:9:1: error: unknown key 'optimiser' (did you mean 'optimizer'?)",
      "several_problems.yaml:11:11: training.epochs: error: must be at least 1, got 0",
  };
  CHECK(found == expected);
}

}  // namespace halfstep::config::testing

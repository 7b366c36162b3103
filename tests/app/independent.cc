#include "app/independent.h"

#include <doctest/doctest.h>

#include "support/paths.h"

namespace halfstep::test {

void check_independently(const TemporaryDirectory& directory,
                         const std::vector<std::string>& files) {
  constexpr int k_not_installed = 77;
  const Finished schema = halfstep({"report", "schema"}, directory.path());
  REQUIRE(schema.exit_code == 0);
  write_text(directory.file("schema.json"), schema.out);
  std::vector<std::string> words{
      "python3", (source_dir() / "tests/app/validate.py").string(), "schema.json"};
  words.insert(words.end(), files.begin(), files.end());
  const Finished other = Process(words, directory.path()).wait();
  CAPTURE(other.out);
  CAPTURE(other.err);
  if (other.exit_code == k_not_installed) {
    MESSAGE("python3-jsonschema is not installed; only the program's own validator looked");
  } else {
    CHECK(other.exit_code == 0);
  }
}

}  // namespace halfstep::test

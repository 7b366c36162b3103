// numerics.jsonl and verify-resume, as a user calls them.

#include <doctest/doctest.h>

#include <filesystem>
#include <ostream>
#include <set>
#include <sstream>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

std::vector<Json> lines(const std::filesystem::path& path) {
  std::vector<Json> all;
  std::istringstream text(read_text(path));
  for (std::string line; std::getline(text, line);) all.push_back(Json::parse(line));
  return all;
}

}  // namespace

TEST_CASE("numerics: sampled steps stand in numerics.jsonl, their summary in the report") {
  const TemporaryDirectory directory;
  SmallRun run;
  run.precision = "{policy: mixed_float16}";
  write_config(directory, run);
  const Finished end =
      train(directory, "run", {"--numerics", "sample", "--set", "report.numerics.every=4"});
  CAPTURE(end.err);
  REQUIRE(end.exit_code == 0);
  const Json numerics = report_of(directory, "run").at("numerics");
  CHECK(numerics.at("mode") == "sample");
  CHECK(numerics.at("sampled_steps") == Json{0, 4, 8});
  std::set<std::string> names;
  for (const Json& tensor : numerics.at("tensors")) {
    names.insert(tensor.at("name").get<std::string>());
    CHECK(tensor.at("steps") == 3);
  }
  CHECK(names.contains("unscale/hidden/kernel/gradient"));
  const std::vector<Json> written = lines(directory.path() / "run" / "numerics.jsonl");
  CHECK(written.size() == 3 * names.size());
  for (const Json& line : written) {
    CHECK(line.at("loss_scale") == 32768);
    CHECK(line.at("ordinal").get<int>() % 4 == 0);
    CHECK(names.contains(line.at("name").get<std::string>()));
    CHECK(line.contains("exponent_counts"));
  }
  CHECK(halfstep({"report", "validate", "run"}, directory.path()).exit_code == 0);

  REQUIRE(train(directory, "without").exit_code == 0);
  CHECK(report_of(directory, "without").at("numerics").is_null());
  CHECK_FALSE(std::filesystem::exists(directory.path() / "without" / "numerics.jsonl"));
  CHECK(final_hash(directory, "without") == final_hash(directory, "run"));
}

TEST_CASE("numerics: a mode that does not exist is refused with the ones that do") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished end = train(directory, "run", {"--numerics", "sampled"});
  CHECK(end.exit_code == 2);
  CHECK(end.err.find("must be one of none, sample, full") != std::string::npos);
}

TEST_CASE("verify-resume: says that the resumed run is the whole run") {
  const TemporaryDirectory directory;
  write_config(directory);
  const Finished text = halfstep({"verify-resume", "run.yaml", "--at-step", "5"}, directory.path());
  CAPTURE(text.err);
  CHECK(text.exit_code == 0);
  CHECK(text.out.find("bitwise identical") != std::string::npos);
  const Finished json =
      halfstep({"verify-resume", "run.yaml", "--at-step", "5", "--json"}, directory.path());
  const Json check = Json::parse(json.out);
  CHECK(check.at("equal") == true);
  CHECK(check.at("steps") == 10);
  CHECK(check.at("whole_hash") == check.at("resumed_hash"));
  write_text(directory.file("check.json"), json.out);
  CHECK(halfstep({"report", "validate", "check.json"}, directory.path()).exit_code == 0);
  CHECK(halfstep({"verify-resume", "run.yaml", "--at-step", "0"}, directory.path()).exit_code == 2);
  CHECK(halfstep({"verify-resume", "run.yaml", "--at-step", "99"}, directory.path()).exit_code ==
        2);
}

}  // namespace halfstep::test

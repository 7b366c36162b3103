// Comparisons that several processes train in one directory.

#include "study/shards.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "core/directory_lock.h"
#include "core/error.h"
#include "core/files.h"
#include "fixture.h"
#include "support/temporary_directory.h"

namespace halfstep::study {
namespace {

namespace fs = std::filesystem;

CompareOptions tiny_options(std::int64_t seeds) {
  CompareOptions options;
  for (const std::string word : {"float32", "mixed_bfloat16"}) {
    options.variants.push_back(tiny_variant(word));
  }
  options.seeds = seeds;
  return options;
}

struct CountRuns final : StudyObserver {
  void on_run(const report::ComparedRunBlock&) override { ++runs; }
  int runs = 0;
};

/// Trains a shard; returns the number of runs that it trained.
int train(const std::string& directory, const Shard& shard, const CompareOptions& options) {
  CountRuns observer;
  const train::Status status = train_shard(options,
                                           shard,
                                           directory,
                                           tiny_spec(),
                                           report::config_block(tiny_spec(), {}),
                                           tiny_data(),
                                           cpu(),
                                           observer);
  CHECK(status == train::Status::completed);
  return observer.runs;
}

/// A report without its times, as JSON.
Json untimed(report::CompareReport report) {
  for (report::ComparedRunBlock& run : report.runs) {
    run.step_time = {};
    run.epoch_seconds.clear();
    run.history = {};
    run.train_seconds = run.wall_seconds = 0;
  }
  for (report::PolicyBlock& policy : report.policies) {
    policy.step_time.reset();
    policy.speedup.reset();
  }
  std::erase_if(report.notes,
                [](const std::string& note) { return note.find("times") != std::string::npos; });
  return report::to_json(report, {.nonfinite_strings = true});
}

std::string error_of(const std::string& directory, const CompareOptions& options) {
  try {
    merge_shards(directory, options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("shards: their report is that of one process, and nothing is trained twice") {
  const CompareOptions options = tiny_options(3);
  CountRuns alone;
  const Json whole = untimed(compare(options, tiny_data(), cpu(), alone));
  CHECK(alone.runs == 6);
  // Two shards have whole seeds, five a run or two each.
  for (const std::int64_t count : {1, 2, 5}) {
    CAPTURE(count);
    const test::TemporaryDirectory directory;
    const std::string path = directory.path().string();
    int trained = 0;
    for (std::int64_t i = count; i >= 1; --i) trained += train(path, {i, count}, options);
    CHECK(trained == 6);
    for (std::int64_t i = 1; i <= count; ++i) CHECK(train(path, {i, count}, options) == 0);
    const report::CompareReport merged = merge_shards(path, options).report;
    CHECK(untimed(merged) == whole);
    // Only policies that took turns on one machine are compared in speed.
    CHECK(merged.policies[1].speedup.has_value() == (count <= 3));
    CHECK(merged.policies[1].step_time.has_value());
  }
}

TEST_CASE("shards: missing runs are named, and a shard that died is repeated from its last run") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path().string();
  const CompareOptions options = tiny_options(2);
  CHECK(error_of(path, options).find("no shard has trained here") != std::string::npos);
  CHECK(train(path, {1, 2}, options) == 2);
  const std::string missing = error_of(path, options);
  CAPTURE(missing);
  CHECK(missing.find("the run of float32 with seed 12 is missing") != std::string::npos);
  CHECK(missing.find("the run of mixed_bfloat16 with seed 12 is missing") != std::string::npos);
  CHECK(missing.find("seed 11") == std::string::npos);
  CHECK(train(path, {2, 2}, options) == 2);
  // A shard that died between the files of a seed does the seed again, whose policies took turns.
  fs::remove(directory.path() / "runs" / "mixed_bfloat16-12" / "run.json");
  CHECK(train(path, {2, 2}, options) == 2);
  CHECK(merge_shards(path, options).report.policies[1].speedup.has_value());
  write_file_atomically((directory.path() / "runs" / "float32-12" / "run.json").string(), "{}");
  CHECK(error_of(path, options).find("repeat its shard") != std::string::npos);
}

TEST_CASE("shards: a run that another process trains is not trained twice") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path().string();
  const CompareOptions options = tiny_options(2);
  train(path, {1, 2}, options);
  const fs::path folder = directory.path() / "runs" / "mixed_bfloat16-12";
  fs::create_directories(folder);
  {
    const DirectoryLock other(folder.string());
    CHECK_THROWS_AS(train(path, {2, 2}, options), UserError);
    CHECK(error_of(path, options).find("mixed_bfloat16 with seed 12 is being trained") !=
          std::string::npos);
  }
  CHECK(train(path, {2, 2}, options) == 2);
}

TEST_CASE("shards: another comparison in the same directory is refused") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path().string();
  train(path, {1, 2}, tiny_options(2));
  CHECK_THROWS_WITH_AS(
      train(path, {1, 3}, tiny_options(3)), doctest::Contains("`seeds` differs"), UserError);
  CHECK_THROWS_WITH_AS(
      train(path, {1, 5}, tiny_options(2)), doctest::Contains("5 shards for 4 runs"), UserError);
}

TEST_CASE("shards: K/N is read, and errors say the form") {
  CHECK(parse_shard("2/5", "--shard").index == 2);
  CHECK(parse_shard("5/5", "--shard").count == 5);
  for (const std::string text : {"", "2", "0/5", "6/5", "2/5x", "a/b", "2/", "-1/3", "2 /5"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH_AS(parse_shard(text, "--shard"), doctest::Contains("such as 2/5"), UserError);
  }
}

}  // namespace halfstep::study

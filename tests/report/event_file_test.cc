// TensorBoard's frames and checksums.

#include "report/export/event_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <ostream>

#include "core/files.h"
#include "report/export/timeline.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

TEST_CASE("events: CRC-32C gives the values of RFC 3720") {
  CHECK(crc32c("123456789") == 0xE3069283);
  CHECK(crc32c("") == 0);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AA);
  CHECK(crc32c(std::string(32, '\xFF')) == 0x62A8AB43);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  CHECK(crc32c(rising) == 0x46DD794E);
}

TEST_CASE("events: a frame is length, its CRC, data, its CRC") {
  const std::string frame = framed("abc");
  REQUIRE(frame.size() == 8 + 4 + 3 + 4);
  CHECK(frame.substr(0, 8) == std::string("\x03\0\0\0\0\0\0\0", 8));
  CHECK(frame.substr(12, 3) == "abc");
}

/// A record whose data begin with nine bytes of time, as those of events do.
std::string record(char time, const std::string& rest) {
  return framed(std::string(9, time) + rest);
}

TEST_CASE("events: a file keeps what it has, drops what changed and gains the rest") {
  const fs::path folder =
      fs::temp_directory_path() / ("halfstep_events_" + std::to_string(::getpid()));
  const std::string path = (folder / "tb" / "events").string();
  const std::string a = record('1', "version"), b = record('2', "one"), c = record('3', "two");
  update_event_file(path, {a, b});
  CHECK(read_file(path) == a + b);
  update_event_file(path, {a, b, c});
  CHECK(read_file(path) == a + b + c);
  // A different time alone is no change: the existing event stays.
  update_event_file(path, {record('9', "version"), record('9', "one"), c});
  CHECK(read_file(path) == a + b + c);
  // A changed record is removed, with all that follow it.
  const std::string changed = record('4', "one, whole");
  update_event_file(path, {a, changed});
  CHECK(read_file(path) == a + changed);
  // A torn end, as a crash leaves it, is cut off.
  write_file_atomically(path, a + b.substr(0, b.size() - 3));
  update_event_file(path, {a, b, c});
  CHECK(read_file(path) == a + b + c);
  write_file_atomically(path, "no frames at all, whatever it is");
  update_event_file(path, {a});
  CHECK(read_file(path) == a);
  fs::remove_all(folder);
}

/// A run of two epochs of four batches, a point for every `interval` of them.
TrainReport run_by_step(std::int64_t interval, const char* status) {
  TrainReport report;
  report.status = status;
  report.run.started_at = "2026-01-31T12:00:00Z";
  report.samples.seen = 80;
  report.steps.ordinal = 8;
  report.loss_scale.initial = 8;
  report.loss_scale.events = {{0, 3, 2, 8, 4, {}}, {0, 4, 2, 4, 2, {}}, {0, 8, 6, 2, 4, {}}};
  report.history.epoch = {1, 2};
  report.history.loss = {2.0, 1.0};
  report.history.learning_rate = {0.5, 0.5};
  report.history.loss_scale = {2.0, 4.0};
  report.history.skipped_steps = {1, 0};
  report.history.steps = {4, 4};
  report.history.train_seconds = {4, 4};
  report.history.eval_seconds = {1, 1};
  StepColumns& steps = report.step_history.emplace();
  steps.interval = interval;
  for (std::int64_t s = 1; s <= 8; ++s) {
    if (s % interval != 0 && s != 8) continue;
    steps.step.push_back(s);
    steps.loss.emplace_back(static_cast<double>(s));
    steps.learning_rate.emplace_back(0.5);
    steps.loss_scale.emplace_back(s < 3 ? 8.0 : s < 7 ? 2.0 : 4.0);
    steps.skipped_steps.push_back(s == 3 ? 1 : 0);
  }
  return report;
}

TEST_CASE("events: a record for every interval, every change of the scale and every epoch") {
  // Version, the scale before the first batch, eight points, two epochs.
  CHECK(event_records(run_by_step(1, "completed")).size() == 12);
  // Points at 3, 6 and 8; the change at batch 3 is in the first, the one at batch 7 in none.
  CHECK(event_records(run_by_step(3, "completed")).size() == 1 + 1 + 3 + 1 + 2);
  TrainReport old = run_by_step(3, "completed");
  old.step_history.reset();
  CHECK(event_records(old).size() == 1 + 3 + 2);
}

TEST_CASE("events: an interval that is not complete waits, so that written records stay") {
  const std::vector<std::string> during = event_records(run_by_step(3, "running"));
  const std::vector<std::string> end = event_records(run_by_step(3, "completed"));
  REQUIRE(end.size() == during.size() + 1);
  for (std::size_t i = 0; i + 1 < during.size(); ++i) CHECK(during[i] == end[i]);
}

TEST_CASE("timeline: UTC as seconds, epochs end to end") {
  CHECK(unix_seconds("1970-01-02T00:00:01Z") == 86401);
  CHECK(unix_seconds("2024-02-29T12:00:00Z") == 1709208000);
  CHECK_FALSE(unix_seconds("2023-02-29T12:00:00Z").has_value());
  CHECK_FALSE(unix_seconds("yesterday").has_value());
  TrainReport report;
  report.run.started_at = "1970-01-01T00:00:10Z";
  report.samples.seen = 100;
  report.history.epoch = {1, 2};
  report.history.steps = {3, 1};
  report.history.train_seconds = {2.0, 1.0};
  report.history.eval_seconds = {0.5, 0.25};
  const std::vector<EpochTime> times = epoch_times(report);
  REQUIRE(times.size() == 2);
  CHECK(times[0].start == 10);
  CHECK(times[0].end == 12.5);
  CHECK(times[1].start == 12.5);
  CHECK(times[1].trained == 13.5);
  CHECK(times[0].samples == 75);
  CHECK(times[1].samples == 100);
  CHECK(times[1].steps == 4);
}

TEST_CASE("timeline: epochs of a resumed run begin with the process that trained them") {
  TrainReport report;
  report.run.started_at = "1970-01-01T00:05:00Z";
  report.history.epoch = {1, 2, 3};
  report.history.steps = {4, 4, 4};
  report.history.train_seconds = {4.0, 4.0, 4.0};
  report.history.eval_seconds = {1.0, 1.0, 1.0};
  report.run.segments.resize(3);
  report.run.segments[0].started_at = "1970-01-01T00:00:10Z";
  report.run.segments[1].first_ordinal = 6;  // in the middle of the second epoch
  report.run.segments[1].started_at = "1970-01-01T00:01:40Z";
  report.run.segments[2].first_ordinal = 8;
  report.run.segments[2].started_at = "1970-01-01T00:05:00Z";
  CHECK(start_of(report) == 10);
  const std::vector<EpochTime> times = epoch_times(report);
  REQUIRE(times.size() == 3);
  CHECK(times[0].end == 15);
  CHECK(times[1].start == 15);
  CHECK(times[1].trained == 102);
  CHECK(times[1].end == 103);
  CHECK(times[2].start == 300);
  CHECK(times[2].end == 305);
}

}  // namespace
}  // namespace halfstep::report

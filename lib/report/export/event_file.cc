#include "report/export/event_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/error.h"
#include "core/files.h"
#include "report/export/exporter.h"
#include "report/export/timeline.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::uint32_t, 256> crc_table() {
  constexpr std::uint32_t k_reflected_polynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) * k_reflected_polynomial);
    table[i] = crc;
  }
  return table;
}

template <class T>
void put(std::string& bytes, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    bytes += static_cast<char>((value >> (8 * i)) & 0xFF);
  }
}

/// CRC-32C of data that contains CRCs is weak, so TensorFlow rotates it and adds a constant.
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xA282EAD8U; }

/// The wire types of protobuf that are needed.
enum class Wire : std::uint8_t { varint = 0, bits64 = 1, bytes = 2, bits32 = 5 };

void put_varint(std::string& message, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) message += static_cast<char>((value & 0x7F) | 0x80);
  message += static_cast<char>(value);
}

void put_key(std::string& message, int field, Wire wire) {
  put_varint(message, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}

void put_bytes(std::string& message, int field, std::string_view bytes) {
  put_key(message, field, Wire::bytes);
  put_varint(message, bytes.size());
  message += bytes;
}

/// Event {double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5}.
std::string event(double wall_time, std::int64_t step) {
  std::string message;
  put_key(message, 1, Wire::bits64);
  put(message, std::bit_cast<std::uint64_t>(wall_time));
  put_key(message, 2, Wire::varint);
  put_varint(message, static_cast<std::uint64_t>(step));
  return message;
}

/// Summary {repeated Value value = 1}, Value {string tag = 1; float simple_value = 2}.
void put_scalar(std::string& summary, const std::string& tag, const std::optional<double>& number) {
  if (!number) return;
  std::string value;
  put_bytes(value, 1, tag);
  put_key(value, 2, Wire::bits32);
  put(value, std::bit_cast<std::uint32_t>(static_cast<float>(*number)));
  put_bytes(summary, 1, value);
}

std::string tag_of(const std::string& column) {
  return column.starts_with("val_") ? "val/" + column.substr(4) : "train/" + column;
}

/// A summary and the step it belongs to.
struct Scalars {
  std::int64_t step = 0;
  double time = 0;
  std::string summary;

  std::string frame() const {
    std::string message = event(time, step);
    put_bytes(message, 5, summary);
    return framed(message);
  }
};

/// The time of a batch, interpolated within its epoch.
double time_of(std::int64_t step, const std::vector<EpochTime>& times, double start) {
  std::int64_t before = 0;
  for (const EpochTime& epoch : times) {
    if (step <= epoch.steps && epoch.steps > before) {
      const double share =
          static_cast<double>(step - before) / static_cast<double>(epoch.steps - before);
      return epoch.start + share * (epoch.trained - epoch.start);
    }
    before = epoch.steps;
  }
  return times.empty() ? start : times.back().end;
}

/// An event per interval of the step history.
std::vector<Scalars> interval_events(const TrainReport& report) {
  std::vector<Scalars> events;
  if (!report.step_history) return events;
  const StepColumns& history = *report.step_history;
  const bool running = report.status == "running";
  for (std::size_t i = 0; i < history.step.size(); ++i) {
    Scalars scalars;
    scalars.step = history.step[i];
    if (running && scalars.step % history.interval != 0) break;
    put_scalar(scalars.summary, "step/loss", history.loss[i]);
    for (const auto& [name, means] : history.metrics) {
      put_scalar(scalars.summary, "step/" + name, means[i]);
    }
    put_scalar(scalars.summary, "step/learning_rate", history.learning_rate[i]);
    put_scalar(scalars.summary, "step/loss_scale", history.loss_scale[i]);
    put_scalar(scalars.summary, "step/skipped", static_cast<double>(history.skipped_steps[i]));
    events.push_back(std::move(scalars));
  }
  return events;
}

/// An event for the scale after each batch where it changed; the first one for the initial scale.
/// `written`: the events that contain it already.
std::vector<Scalars> scale_change_events(const LossScale& scale,
                                         const std::vector<Scalars>& written) {
  std::vector<Scalars> events;
  const auto add = [&](std::int64_t step, const std::optional<double>& value) {
    // A retried batch changes the scale more than once.
    if (!events.empty() && events.back().step == step) events.pop_back();
    const auto at = std::lower_bound(
        written.begin(), written.end(), step, [](const Scalars& s, std::int64_t x) {
          return s.step < x;
        });
    if (at != written.end() && at->step == step) return;
    events.push_back({step, 0, ""});
    put_scalar(events.back().summary, "step/loss_scale", value);
  };
  if (!scale.events.empty()) add(0, scale.initial);
  for (const train::ScaleEvent& change : scale.events) {
    add(batches_after(change.ordinal), change.to);
  }
  return events;
}

std::string epoch_summary(const History& history, std::size_t index) {
  std::string summary;
  for (const std::string& column : history.metric_names()) {
    put_scalar(summary, tag_of(column), (*history.metric(column))[index]);
  }
  put_scalar(summary, "train/learning_rate", history.learning_rate[index]);
  put_scalar(summary, "train/loss_scale", history.loss_scale[index]);
  put_scalar(summary, "train/skipped_steps", static_cast<double>(history.skipped_steps[index]));
  return summary;
}

/// Bytes of a frame around its data, and before it.
constexpr std::size_t k_header = 12, k_overhead = 16;

/// The complete frame that starts at `at`, empty when there is none.
std::string_view frame_at(std::string_view file, std::size_t at) {
  if (file.size() - at < k_overhead) return {};
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < sizeof length; ++i) {
    length |= static_cast<std::uint64_t>(static_cast<unsigned char>(file[at + i])) << (8 * i);
  }
  if (length > file.size() - at - k_overhead) return {};
  return file.substr(at, static_cast<std::size_t>(length) + k_overhead);
}

/// The data of a frame after the nine bytes of its time.
std::string_view without_time(std::string_view frame) {
  constexpr std::size_t k_time = 9;
  std::string_view data = frame.substr(k_header, frame.size() - k_overhead);
  data.remove_prefix(std::min(k_time, data.size()));
  return data;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array k_table = crc_table();
  std::uint32_t crc = 0xFFFFFFFF;
  for (char c : bytes) crc = k_table[(crc ^ static_cast<unsigned char>(c)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

std::string framed(std::string_view data) {
  std::string frame;
  put(frame, static_cast<std::uint64_t>(data.size()));
  put(frame, masked(crc32c(frame)));
  frame += data;
  put(frame, masked(crc32c(data)));
  return frame;
}

std::vector<std::string> event_records(const TrainReport& report) {
  const std::vector<EpochTime> times = epoch_times(report);
  const double start = start_of(report);
  std::string version = event(start, 0);
  put_bytes(version, 3, "brain.Event:2");
  std::vector<Scalars> events = interval_events(report);
  for (Scalars& change : scale_change_events(report.loss_scale, events)) {
    events.push_back(std::move(change));
  }
  for (Scalars& scalars : events) scalars.time = time_of(scalars.step, times, start);
  for (std::size_t i = 0; i < times.size(); ++i) {
    events.push_back({times[i].steps, times[i].end, epoch_summary(report.history, i)});
  }
  if (report.test) {
    events.push_back({report.steps.ordinal, times.empty() ? start : times.back().end, ""});
    for (const auto& [name, value] : *report.test) {
      put_scalar(events.back().summary, "test/" + name, value);
    }
  }
  std::ranges::stable_sort(events, {}, &Scalars::step);
  std::vector<std::string> records{framed(version)};
  for (const Scalars& scalars : events) records.push_back(scalars.frame());
  return records;
}

void update_event_file(const std::string& path, const std::vector<std::string>& records) {
  make_folder(fs::path(path).parent_path().string());
  std::error_code error;
  const std::string file = fs::exists(path, error) ? read_file(path) : "";
  std::size_t kept = 0, next = 0;
  for (; next < records.size(); ++next) {
    const std::string_view frame = frame_at(file, kept);
    if (frame.empty() || without_time(frame) != without_time(records[next])) break;
    kept += frame.size();
  }
  if (kept < file.size()) fs::resize_file(path, kept, error);
  if (error) throw UserError(ErrorKind::data, {path, 0, 0, ""}, error.message());
  std::string fresh;
  for (; next < records.size(); ++next) fresh += records[next];
  struct Close {
    void operator()(std::FILE* out) const { std::fclose(out); }
  };
  const std::unique_ptr<std::FILE, Close> out(std::fopen(path.c_str(), "abe"));
  if (!out || std::fwrite(fresh.data(), 1, fresh.size(), out.get()) != fresh.size() ||
      std::fflush(out.get()) != 0) {
    throw UserError(ErrorKind::data, {path, 0, 0, ""}, std::strerror(errno));
  }
}

namespace {

std::string write_tensorboard(const TrainReport& report) {
  std::string bytes;
  for (const std::string& record : event_records(report)) bytes += record;
  return bytes;
}

}  // namespace

constinit const Exporter k_tensorboard{.name = "tensorboard",
                                       .file = "events.out.tfevents.halfstep",
                                       .binary = true,
                                       .train = write_tensorboard};

}  // namespace halfstep::report

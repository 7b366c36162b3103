#include "report/export/event_file.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "core/error.h"
#include "core/files.h"
#include "report/export/timeline.h"
#include "report/history_columns.h"

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

/// A CRC of data that holds CRCs is weak, so TensorFlow rotates it and adds a constant.
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
void put_scalar(std::string& summary, const std::string& tag, const Json& number) {
  if (!number.is_number()) return;
  std::string value;
  put_bytes(value, 1, tag);
  put_key(value, 2, Wire::bits32);
  put(value, std::bit_cast<std::uint32_t>(number.get<float>()));
  put_bytes(summary, 1, value);
}

std::string tag_of(const std::string& column) {
  return column.starts_with("val_") ? "val/" + column.substr(4) : "train/" + column;
}

std::string epoch_event(const Json& history, std::size_t index, const EpochTime& time) {
  std::string summary;
  for (const std::string& column : metric_columns(history)) {
    put_scalar(summary, tag_of(column), history.at(column)[index]);
  }
  for (const char* column : {"learning_rate", "loss_scale", "skipped_steps"}) {
    put_scalar(summary, tag_of(column), history.at(column)[index]);
  }
  std::string message = event(time.end, time.steps);
  put_bytes(message, 5, summary);
  return message;
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

/// What a frame tells apart from when: its data behind the nine bytes of the time.
std::string_view told(std::string_view frame) {
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

std::vector<std::string> event_records(const Json& report) {
  const std::vector<EpochTime> times = epoch_times(report);
  const double start = unix_seconds(report.at("run").at("started_at"));
  std::string version = event(start, 0);
  put_bytes(version, 3, "brain.Event:2");
  std::vector<std::string> records{framed(version)};
  for (std::size_t i = 0; i < times.size(); ++i) {
    records.push_back(framed(epoch_event(report.at("history"), i, times[i])));
  }
  if (!report.at("test").is_object()) return records;
  std::string summary;
  for (const auto& [name, value] : report.at("test").items()) {
    put_scalar(summary, "test/" + name, value);
  }
  std::string message = event(times.empty() ? start : times.back().end,
                              report.at("steps").at("ordinal").get<std::int64_t>());
  put_bytes(message, 5, summary);
  records.push_back(framed(message));
  return records;
}

void update_event_file(const std::string& path, const std::vector<std::string>& records) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  const std::string file = fs::exists(path, error) ? read_file(path) : "";
  std::size_t kept = 0, next = 0;
  for (; next < records.size(); ++next) {
    const std::string_view frame = frame_at(file, kept);
    if (frame.empty() || told(frame) != told(records[next])) break;
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

}  // namespace halfstep::report

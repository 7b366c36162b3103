#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "core/json_fields.h"
#include "core/ranges.h"
#include "data/bytes.h"
#include "data/safetensors_dtype.h"
#include "data/tensor_files.h"

namespace halfstep::data {
namespace {

using nlohmann::json;

constexpr std::uint64_t k_largest_header = 100'000'000;
constexpr std::size_t k_deepest = 3;  ///< {tensor: {data_offsets: [..]}}

json parse_header(const std::string& path, const std::string& text) {
  if (const std::string excess = find_limit_violation(text, {.depth = k_deepest});
      !excess.empty()) {
    throw file_error(path, "has a header that {}", excess);
  }
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw file_error(path, "has a header that is not JSON (byte {})", error.byte);
  } catch (const json::out_of_range&) {
    throw file_error(path, "has a number in its header that no double can hold");
  }
}

std::optional<std::vector<std::int64_t>> read_integers(const json& list, std::size_t most) {
  if (!list.is_array() || list.size() > most) return std::nullopt;
  std::vector<std::int64_t> values;
  for (const json& value : list) {
    if (!value.is_number_unsigned()) return std::nullopt;
    const auto number = value.get<std::uint64_t>();
    if (number > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    values.push_back(static_cast<std::int64_t>(number));
  }
  return values;
}

SafetensorsEntry read_entry(const std::string& path, const std::string& name, const json& value) {
  const auto malformed = [&] { return file_error(path, "describes tensor '{}' wrongly", name); };
  if (!value.is_object() || value.size() != 3) throw malformed();
  const auto dtype_name = value.find("dtype");
  const auto shape = value.find("shape");
  const auto offsets = value.find("data_offsets");
  if (dtype_name == value.end() || shape == value.end() || offsets == value.end() ||
      !dtype_name->is_string()) {
    throw malformed();
  }
  const auto& code = dtype_name->get_ref<const std::string&>();
  const auto* type = find_or_null(k_safetensors_types, code, &SafetensorsType::name);
  if (type == nullptr) {
    throw file_error(path, "has tensor '{}' of type '{}', which cannot be read", name, code);
  }
  const std::optional<std::vector<std::int64_t>> extents = read_integers(*shape, Shape::k_max_rank);
  const std::optional<std::vector<std::int64_t>> range = read_integers(*offsets, 2);
  if (!extents || !range || range->size() != 2) throw malformed();
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtype = type->dtype;
  entry.begin = static_cast<std::uint64_t>((*range)[0]);
  entry.end = static_cast<std::uint64_t>((*range)[1]);
  const std::optional<std::uint64_t> bytes = byte_count(*extents, size_bytes(entry.dtype));
  if (!bytes || entry.end < entry.begin || *bytes != entry.end - entry.begin) {
    throw file_error(path, "gives tensor '{}' another size than its shape", name);
  }
  entry.shape = Shape(*extents);
  return entry;
}

}  // namespace

SafetensorsReader::SafetensorsReader(const std::string& path) : file_(path) {
  std::array<std::byte, 8> length{};
  if (file_.size() < length.size()) {
    throw file_error(path, "is not a safetensors file: it has {} bytes", file_.size());
  }
  file_.read(0, length);
  const auto header_bytes = load_le<std::uint64_t>(length.data());
  if (header_bytes > file_.size() - length.size()) {
    throw file_error(
        path,
        "is cut off or no safetensors file: its header would have {} bytes, the file has {}",
        header_bytes,
        file_.size());
  }
  if (header_bytes > k_largest_header) {
    throw file_error(path, "has a header of {} bytes; 100 MB are the most", header_bytes);
  }
  std::string text(header_bytes, '\0');
  file_.read(length.size(), std::as_writable_bytes(std::span(text)));
  if (!text.starts_with('{')) throw file_error(path, "is not a safetensors file");
  data_offset_ = length.size() + header_bytes;

  const json header = parse_header(path, text);
  for (const auto& [name, value] : header.items()) {
    if (name != k_safetensors_metadata) {
      entries_.push_back(read_entry(path, name, value));
      continue;
    }
    if (!value.is_object()) throw file_error(path, "has metadata that is not a map of strings");
    for (const auto& [key, word] : value.items()) {
      if (!word.is_string()) throw file_error(path, "has metadata '{}' that is not a string", key);
      metadata_[key] = word.get<std::string>();
    }
  }
  std::ranges::sort(entries_, [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  std::uint64_t at = 0;
  for (const SafetensorsEntry& entry : entries_) {
    if (entry.begin != at) {
      throw file_error(path,
                       "has {} before tensor '{}'",
                       entry.begin < at ? "an overlap" : "a hole",
                       entry.name);
    }
    at = entry.end;
  }
  const std::uint64_t available = file_.size() - data_offset_;
  if (at != available) {
    throw file_error(path, "has {} bytes of tensors where its header says {}", available, at);
  }
}

const SafetensorsEntry* SafetensorsReader::find(std::string_view name) const {
  return find_or_null(entries_, name, &SafetensorsEntry::name);
}

Tensor SafetensorsReader::read(const SafetensorsEntry& entry) const {
  Tensor tensor(entry.dtype, entry.shape);
  read(entry, tensor.view());
  return tensor;
}

void SafetensorsReader::read(const SafetensorsEntry& entry, const TensorView& to) const {
  require(to.dtype == entry.dtype && to.bytes() == entry.end - entry.begin,
          "tensor '{}' of {} {} into {} {}",
          entry.name,
          name(entry.dtype),
          to_string(entry.shape),
          name(to.dtype),
          to_string(to.shape));
  const std::span<std::byte> bytes(to.as<std::byte>(), to.bytes());
  file_.read(data_offset_ + entry.begin, bytes);
  if (entry.dtype == DType::boolean &&
      std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte{1}; })) {
    throw file_error(path(), "has booleans in '{}' that are neither 0 nor 1", entry.name);
  }
}

}  // namespace halfstep::data

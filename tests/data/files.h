#pragma once
// Files that the tests of data/ make, damage and throw away.

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/tensor.h"
#include "data/file.h"

namespace halfstep::data::testing {

using Bytes = std::vector<std::byte>;

/// A new folder that is removed on destruction; in memory where such a file system exists.
class TempFolder {
 public:
  TempFolder() {
    const std::filesystem::path memory = "/dev/shm";
    const bool in_memory = access(memory.c_str(), W_OK) == 0;
    const auto parent = in_memory ? memory : std::filesystem::temp_directory_path();
    std::string pattern = (parent / "halfstep-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const {
    const std::filesystem::path path = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(path.parent_path());
    return path.string();
  }

 private:
  std::string path_;
};

inline Bytes bytes(std::initializer_list<int> values) {
  Bytes all;
  for (const int value : values) all.push_back(static_cast<std::byte>(value));
  return all;
}

inline Bytes bytes(std::string_view text) {
  const auto all = std::as_bytes(std::span(text));
  return {all.begin(), all.end()};
}

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Without the flush to the disk that OutputFile does: tests write thousands of files.
inline void write_bytes(const std::string& path, std::span<const std::byte> content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  const std::size_t written =
      content.empty() ? 0 : std::fwrite(content.data(), 1, content.size(), file);
  std::fclose(file);
  REQUIRE(written == content.size());
}

/// The message of the UserError of `kind` that `f` throws; "" when it throws none.
template <class F>
std::string error_of(F&& f, ErrorKind kind = ErrorKind::data) {
  try {
    f();
  } catch (const UserError& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return {};
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.as<std::byte>(), b.as<std::byte>(), a.bytes()) == 0);
}

template <class T>
Tensor tensor(const Shape& shape, std::initializer_list<T> values) {
  Tensor t(dtype_of<T>(), shape);
  REQUIRE(t.elements() == static_cast<std::int64_t>(values.size()));
  std::copy(values.begin(), values.end(), t.as<T>());
  return t;
}

/// Elements 0, 1, 2, ... (modulo 256 for uint8, alternating for bool).
inline Tensor counting(DType dtype, const Shape& shape) {
  Tensor numbers(DType::int32, shape);
  for (std::int64_t i = 0; i < numbers.elements(); ++i) {
    numbers.as<std::int32_t>()[i] =
        static_cast<std::int32_t>(dtype == DType::boolean ? i % 2 : i % 256);
  }
  Tensor t(dtype, shape);
  convert(numbers.view(), t.view());
  return t;
}

/// Reads every beginning of a file, each of which must be refused.
template <class Read>
void check_truncations(const std::string& path, const Bytes& whole, Read&& read) {
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    write_bytes(path, std::span(whole).first(length));
    CHECK(error_of([&] { read(path); }) != "");
  }
}

/// Reads a file with each bit flipped: a UserError rejects it, or `accept` must hold for the
/// result.
template <class Read, class Accept>
void check_bit_flips(const std::string& path, const Bytes& whole, Read&& read, Accept&& accept) {
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    CAPTURE(bit);
    Bytes damaged = whole;
    damaged[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    write_bytes(path, damaged);
    std::optional<std::invoke_result_t<Read&, const std::string&>> result;
    error_of([&] { result.emplace(read(path)); });
    CHECK((!result || accept(*result)));
  }
}

}  // namespace halfstep::data::testing

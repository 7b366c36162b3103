#pragma once
// Files in and out: reading with clear errors, writing that is complete or absent.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace halfstep::data {

inline Where in_file(const std::string& path) {
  Where where;
  where.file = path;
  return where;
}

/// UserError(data) about a file.
template <class... Args>
UserError file_error(const std::string& path, fmt::format_string<Args...> text, Args&&... args) {
  return UserError(ErrorKind::data, in_file(path), fmt::format(text, std::forward<Args>(args)...));
}

/// An open regular file, read at any offset.
class InputFile {
 public:
  /// Errors: UserError(data) when it cannot be opened or is not a regular file.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Fills `to` from `offset`. Errors: UserError(data) when the file ends before.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  std::string path_;
  int descriptor_;
  std::uint64_t size_;
};

/// All bytes of a regular file. Errors: as InputFile.
std::vector<std::byte> read_file(const std::string& path);

/// Writes to a neighbour `path.<process>.partial` that takes the place of `path` on commit and goes
/// away otherwise, so that `path` is never half written. Links are not written through.
class OutputFile {
 public:
  /// Errors: UserError(data) when it cannot be created.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Errors: UserError(data), such as a full disk.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Flushes to the disk and renames. Errors: UserError(data).
  void commit();

 private:
  std::string path_;
  std::string partial_;
  int descriptor_;
};

}  // namespace halfstep::data

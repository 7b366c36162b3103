#pragma once
// Reading files with clear errors. Writing is OutputFile of core/files.h.

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
  /// The first `max_bytes` bytes, or all of a shorter file. Errors: as read.
  std::vector<std::byte> start(std::size_t max_bytes) const;

 private:
  std::string path_;
  int descriptor_;
  std::uint64_t size_;
};

/// All bytes of a regular file. Errors: as InputFile.
std::vector<std::byte> read_file(const std::string& path);

}  // namespace halfstep::data

#pragma once
// ZIP archives as NumPy writes and reads them: entries stored or deflated, zip64, no encryption.
// Source: PKWARE APPNOTE 6.3.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "core/files.h"
#include "data/file.h"

namespace halfstep::data {

/// A size or offset whose value is in the ZIP64 extra field.
inline constexpr std::uint32_t k_in_zip64 = 0xFFFFFFFF;

struct ZipEntry {
  std::string name;
  std::uint64_t size = 0;         ///< of the content
  std::uint64_t stored_size = 0;  ///< in the archive
  std::uint64_t header_offset = 0;
  std::uint32_t crc = 0;
  bool deflated = false;
};

class ZipReader {
 public:
  /// Reads the directory. Errors: UserError(data) when it is damaged, when the archive has several
  /// parts, or when an entry occurs twice.
  explicit ZipReader(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<ZipEntry>& entries() const { return entries_; }
  /// Errors: UserError(data) when the entry is damaged (its CRC-32 is compared).
  std::vector<std::byte> read(const ZipEntry& entry) const;

 private:
  struct Directory;
  Directory find_directory() const;

  InputFile file_;
  std::vector<ZipEntry> entries_;
  std::uint64_t directory_offset_ = 0;
};

/// Writes entries uncompressed.
class ZipWriter {
 public:
  /// Sizes and offsets from `zip64_from` on are written as zip64; NumPy and others read both.
  explicit ZipWriter(const std::string& path, std::uint64_t zip64_from = 0xFFFFFFFF);

  /// The entry's content is the concatenation of `parts`. Errors: UserError(data).
  void add(const std::string& name, std::initializer_list<std::span<const std::byte>> parts);
  /// Writes the directory and renames the file into place. Errors: UserError(data).
  void commit();

 private:
  void write(std::span<const std::byte> bytes);

  OutputFile file_;
  std::uint64_t zip64_from_;
  std::uint64_t offset_ = 0;
  std::vector<ZipEntry> entries_;
};

}  // namespace halfstep::data

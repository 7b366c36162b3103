#pragma once
// Reading of complete files, and atomic writing.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace halfstep {

/// Writes a file atomically: bytes are written to a temporary file in the target's folder,
/// which is flushed to the disk and renamed on commit and removed otherwise. A symbolic link is
/// followed, so that the link stays and its target is replaced; an existing file keeps its mode
/// and, where the system allows it, its owner. A FIFO, a device or a socket is written through
/// instead, since none of them can be replaced by a file.
class OutputFile {
 public:
  /// Blocking: a FIFO waits for its reader. Errors: UserError(data) naming the path and the
  /// system's reason.
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Errors: UserError(data), such as a full disk; the old file then stays.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Flushes to the disk and renames. Errors: UserError(data).
  void commit();

 private:
  void open_temporary();
  void discard();

  std::string path_;       ///< as passed to the constructor, for messages
  std::string target_;     ///< with symbolic links resolved
  std::string temporary_;  ///< "" when the target is written through
  int descriptor_ = -1;
};

/// Writes `text` to `path` through an OutputFile. Errors: as OutputFile.
void write_file_atomically(const std::string& path, std::string_view text);

/// Creates a folder and its parents; returns whether it was created. Errors: UserError(data).
bool make_folder(const std::string& path);

/// Flushes a file or directory to the disk. Errors: UserError(data).
void sync_path(const std::string& path);

/// The content of a file, or its first `max_bytes` bytes. A FIFO is read to its end.
/// Errors: UserError of `kind`, where the file cannot be opened or read.
std::string read_file(const std::string& path,
                      std::size_t max_bytes = SIZE_MAX,
                      ErrorKind kind = ErrorKind::data);

}  // namespace halfstep

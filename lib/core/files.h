#pragma once
// Files that are complete or absent.

#include <string>
#include <string_view>

namespace halfstep {

/// Writes `text` to `path` under a temporary name, flushes it to the disk and renames it.
/// Errors: UserError(data) naming the path and the system's reason; the old file then stays.
void write_file_atomically(const std::string& path, std::string_view text);

/// Flushes a file or directory to the disk. Errors: UserError(data).
void sync_path(const std::string& path);

/// The whole file. Errors: UserError(data).
std::string read_file(const std::string& path);

}  // namespace halfstep

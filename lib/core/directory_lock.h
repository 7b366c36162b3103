#pragma once
// A directory that belongs to one process at a time.

#include <optional>
#include <string>

namespace halfstep {

/// Holds the lock file `.lock` of a directory. The system drops the lock with the process, however
/// it ends, so there is never a stale one to remove. It holds between the hosts of a cluster where
/// the file system passes flock(2) on; where it knows no locks at all, a warning says so.
class DirectoryLock {
 public:
  /// Locks an existing directory.
  /// Errors: UserError(data) when another process holds it, naming process, host and command, or
  /// when the lock file cannot be made.
  explicit DirectoryLock(const std::string& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  /// Where the directory is now: after somebody renamed it, its new absolute path, with a warning
  /// the first time. Errors: UserError(data) when it or its lock file was removed, so that writers
  /// do not make it again without the lock.
  const std::string& path();

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// Whether a process holds the lock of a directory now; nothing where that cannot be determined,
/// because the lock file may not be read or the file system knows no locks. Changes nothing in the
/// directory.
std::optional<bool> directory_in_use(const std::string& directory);

/// Name of the lock file in its directory.
inline constexpr const char* k_lock_file = ".lock";

}  // namespace halfstep

#include "core/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/error.h"
#include "core/log.h"
#include "core/system.h"

namespace halfstep {
namespace {

/// The command line of this process, its arguments separated by blanks.
std::string own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string command, word;
  while (std::getline(file, word, '\0')) command += (command.empty() ? "" : " ") + word;
  return command;
}

/// Tries to lock an open file; the error number, or 0.
int lock(int descriptor, int operation) {
  while (::flock(descriptor, operation | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

constexpr int k_tries = 5;
constexpr std::chrono::milliseconds k_pause{10};

}  // namespace

DirectoryLock::DirectoryLock(const std::string& directory) : path_(directory) {
  const std::string path = directory + "/" + k_lock_file;
  const auto fail = [&](const std::string& message, const std::string& hint = {}) {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (descriptor >= 0) ::close(descriptor);
    throw UserError(ErrorKind::data, {directory, 0, 0, ""}, message, hint);
  };
  descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor_ < 0) fail(fmt::format("cannot be written to: {}", std::strerror(errno)));
  int failure = lock(descriptor_, LOCK_EX);
  // directory_in_use() of another process holds the lock for the time of two system calls.
  for (int tries = 0; failure == EWOULDBLOCK && tries < k_tries; ++tries) {
    std::this_thread::sleep_for(k_pause);
    failure = lock(descriptor_, LOCK_EX);
  }
  if (failure == EWOULDBLOCK) {
    std::string who;
    // Another process writes its line just after it has locked the file, when it gets a processor.
    for (int tries = 0; !std::getline(std::ifstream(path), who) && tries < 100 * k_tries; ++tries) {
      std::this_thread::sleep_for(k_pause);
    }
    fail(fmt::format("another process uses this directory: {}",
                     who.empty() ? "it has just begun" : who),
         "wait for it, or name another directory");
  }
  if (failure != 0) {
    log_warning("{} cannot be locked ({}): make sure that no other process uses it",
                directory,
                std::strerror(failure));
    return;
  }
  // For the message above, in other processes; the lock holds without it, on a full disk too.
  const std::string text = fmt::format(
      "process {} on {} since {}: {}\n", ::getpid(), host_name(), utc_now(), own_command());
  if (::ftruncate(descriptor_, 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::write(descriptor_, text.data(), text.size());
  }
}

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

const std::string& DirectoryLock::path() {
  namespace fs = std::filesystem;
  struct stat held {};
  struct stat there {};
  const bool exists = ::fstat(descriptor_, &held) == 0 && held.st_nlink > 0;
  if (exists && ::stat((path_ + "/" + k_lock_file).c_str(), &there) == 0 &&
      there.st_ino == held.st_ino && there.st_dev == held.st_dev) {
    return path_;
  }
  std::error_code error;
  const fs::path file =
      exists ? fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor_), error) : fs::path();
  if (!fs::exists(file, error)) {
    throw UserError(
        ErrorKind::data,
        {path_, 0, 0, ""},
        fmt::format("was removed, or the file {} in it, while this process used it", k_lock_file));
  }
  log_warning("{} was renamed while this process used it; it is {} now",
              path_,
              file.parent_path().string());
  return path_ = file.parent_path().string();
}

std::optional<bool> directory_in_use(const std::string& directory) {
  const std::string path = directory + "/" + k_lock_file;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (descriptor < 0) return errno == ENOENT ? std::optional(false) : std::nullopt;
  // A shared lock, so that two concurrent queries do not see each other's lock.
  const int failure = lock(descriptor, LOCK_SH);
  ::close(descriptor);
  if (failure == 0) return false;
  return failure == EWOULDBLOCK ? std::optional(true) : std::nullopt;
}

}  // namespace halfstep

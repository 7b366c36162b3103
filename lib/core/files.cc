#include "core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.h"

namespace halfstep {
namespace {

[[noreturn]] void fail(const std::string& path,
                       std::string_view what,
                       ErrorKind kind = ErrorKind::data) {
  throw UserError(kind, {path, 0, 0, ""}, fmt::format("cannot {}: {}", what, std::strerror(errno)));
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags, 0644)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Linux moves at most 2 GiB a call.
constexpr std::size_t k_largest_transfer = std::size_t{1} << 30;

/// The path that `path` leads to through symbolic links, which need not exist.
std::string behind_links(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int k_max_links = 40;  // as many as Linux follows
  fs::path target = path;
  std::error_code error;
  for (int i = 0; fs::is_symlink(target, error); ++i) {
    if (i == k_max_links) {
      errno = ELOOP;
      fail(path, "follow the link");
    }
    const fs::path next = fs::read_symlink(target, error);
    if (error) break;
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target.string();
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path), target_(behind_links(path)) {
  struct stat info {};
  const bool exists = ::stat(target_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    fail(path_, "write");
  }
  if (exists && !S_ISREG(info.st_mode)) {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor_ < 0) fail(path_, "open");
    return;
  }
  open_temporary();
  if (!exists) return;
  // The owner first: changing it clears the set-user-id bit. Without the right to do so the new
  // file stays the caller's own.
  [[maybe_unused]] const int ignored = ::fchown(descriptor_, info.st_uid, info.st_gid);
  if (::fchmod(descriptor_, info.st_mode & 07777) == 0) return;
  const int reason = errno;
  discard();
  errno = reason;
  fail(path_, "set the mode");
}

void OutputFile::open_temporary() {
  // The name is this process's own, so an existing file is a leftover, or a link that
  // must not be followed.
  static std::atomic<unsigned> count{0};
  temporary_ = fmt::format("{}.{}.{}.tmp", target_, ::getpid(), count++);
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  descriptor_ = ::open(temporary_.c_str(), flags, 0644);
  if (descriptor_ < 0 && errno == EEXIST && ::unlink(temporary_.c_str()) == 0) {
    descriptor_ = ::open(temporary_.c_str(), flags, 0644);
  }
  if (descriptor_ < 0) fail(path_, "create");
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() {
  if (descriptor_ < 0) return;
  ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::write(descriptor_, bytes.data(), std::min(bytes.size(), k_largest_transfer));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::commit() {
  const bool renames = !temporary_.empty();
  // A FIFO or a terminal cannot be flushed to a disk.
  if (renames && ::fsync(descriptor_) != 0) fail(path_, "flush");
  const bool closed = ::close(std::exchange(descriptor_, -1)) == 0;
  if (closed && (!renames || std::rename(temporary_.c_str(), target_.c_str()) == 0)) return;
  const int reason = errno;
  if (renames) ::unlink(temporary_.c_str());
  errno = reason;
  fail(path_, closed ? "rename" : "write");
}

void write_file_atomically(const std::string& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

bool make_folder(const std::string& path) {
  std::error_code error;
  const bool made = std::filesystem::create_directories(path, error);
  if (!error) return made;
  errno = error.value();
  fail(path, "make the folder");
}

void sync_path(const std::string& path) {
  const Descriptor file(path, O_RDONLY | O_CLOEXEC);
  if (file.get() < 0) fail(path, "open");
  if (::fsync(file.get()) != 0) fail(path, "flush");
}

std::string read_file(const std::string& path, std::size_t max_bytes, ErrorKind kind) {
  const Descriptor file(path, O_RDONLY | O_CLOEXEC);
  if (file.get() < 0) fail(path, "open", kind);
  std::string text;
  std::array<char, 65536> block;
  while (text.size() < max_bytes) {
    const ssize_t got =
        ::read(file.get(), block.data(), std::min(block.size(), max_bytes - text.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path, "read", kind);
    if (got == 0) break;
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  return text;
}

}  // namespace halfstep

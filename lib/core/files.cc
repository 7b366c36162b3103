#include "core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.h"

namespace halfstep {
namespace {

[[noreturn]] void fail(const std::string& path, std::string_view what) {
  throw UserError(
      ErrorKind::data, {path, 0, 0, ""}, fmt::format("cannot {}: {}", what, std::strerror(errno)));
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

}  // namespace

void write_file_atomically(const std::string& path, std::string_view text) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, ::getpid());
  try {
    // What a killed process of the same number left goes; a link is not written through.
    ::unlink(temporary.c_str());
    const Descriptor file(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC);
    if (file.get() < 0) fail(path, "create");
    for (std::string_view rest = text; !rest.empty();) {
      const ssize_t written = ::write(file.get(), rest.data(), rest.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(path, "write");
      rest.remove_prefix(static_cast<std::size_t>(written));
    }
    if (::fsync(file.get()) != 0) fail(path, "flush");
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail(path, "rename");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void sync_path(const std::string& path) {
  const Descriptor file(path, O_RDONLY | O_CLOEXEC);
  if (file.get() < 0) fail(path, "open");
  if (::fsync(file.get()) != 0) fail(path, "flush");
}

std::string read_file(const std::string& path) {
  if (std::filesystem::is_directory(path)) {
    throw UserError(ErrorKind::data, {path, 0, 0, ""}, "is a directory");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(path, "open");
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) fail(path, "read");
  return std::move(text).str();
}

}  // namespace halfstep

#include "data/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace halfstep::data {
namespace {

// Linux moves at most 2 GiB a call.
constexpr std::size_t k_largest_transfer = std::size_t{1} << 30;

std::string reason() { return std::strerror(errno); }

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path), descriptor_(-1), size_(0) {
  // Non-blocking, so that a FIFO is rejected below and open() does not wait for its writer.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw file_error(path, "cannot be opened: {}", reason());
  struct stat info {};
  const bool known = ::fstat(descriptor_, &info) == 0;
  if (!known || !S_ISREG(info.st_mode)) {
    ::close(descriptor_);
    throw file_error(path,
                     "{}",
                     known && S_ISDIR(info.st_mode) ? "is a folder; a file was expected"
                                                    : "is not a regular file");
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(descriptor_,
                                to.data(),
                                std::min(to.size(), k_largest_transfer),
                                static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_error(path_, "cannot be read: {}", reason());
    if (got == 0) throw file_error(path_, "ends at byte {}, {} bytes early", offset, to.size());
    to = to.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

std::vector<std::byte> InputFile::start(std::size_t max_bytes) const {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(max_bytes, size_));
  read(0, bytes);
  return bytes;
}

std::vector<std::byte> read_file(const std::string& path) {
  const InputFile file(path);
  return file.start(file.size());
}

}  // namespace halfstep::data

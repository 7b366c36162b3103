#pragma once
// Bytes under a path, without a disk.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>

namespace halfstep::fuzz {

/// A regular file in memory, removed on destruction.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes)
      : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::runtime_error("cannot create a file in memory");
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
      if (written <= 0) throw std::runtime_error("cannot write to a file in memory");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace halfstep::fuzz

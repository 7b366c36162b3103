#pragma once
// The memory of a backend's tensors: host memory, or the memory of a device.

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/tensor.h"

namespace halfstep::backend {

/// Peak use of a device's memory, in bytes; zeros for the host's.
struct MemoryPeak {
  std::uint64_t allocated = 0;  ///< by this process, through allocate()
  std::uint64_t in_use = 0;     ///< including libraries and other processes
};

/// Host memory (CUDA: page-locked) from which uploads do not block.
class Staging {
 public:
  virtual ~Staging() = default;
  /// Its bytes, for the host to write; blocks while an upload from them is under way.
  virtual std::byte* data() = 0;
  /// Enqueues a copy of its first `bytes` bytes, in order with the launches; does not block.
  virtual void upload(void* address, std::size_t bytes) = 0;
};

class Memory {
 public:
  virtual ~Memory() = default;

  /// Zero-filled; nullptr for 0 bytes. Errors: UserError(memory), with the bytes requested and
  /// available.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* address) noexcept = 0;
  /// Alignment of allocate(), and of each tensor inside a block.
  virtual std::size_t alignment() const = 0;
  /// Bytes that can still be allocated.
  virtual std::uint64_t available_bytes() const = 0;
  virtual MemoryPeak peak() const { return {}; }

  /// True when the host can access its addresses; then no copies are needed.
  virtual bool is_host() const = 0;
  /// Copies are ordered with the launches before and after them; download() blocks until it has
  /// completed.
  virtual void upload(const void* host, void* address, std::size_t bytes) = 0;
  virtual void download(const void* address, void* host, std::size_t bytes) = 0;
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;
  /// `bytes` bytes; the memory must outlive them. Errors: UserError(memory).
  virtual std::unique_ptr<Staging> staging(std::size_t bytes) = 0;
};

/// Staging in pageable memory: uploads block.
std::unique_ptr<Staging> pageable_staging(Memory& memory, std::size_t bytes);

/// The memory of this process.
const std::shared_ptr<Memory>& host_memory();

/// A block of a Memory, zero-filled when made, owned by one object.
class Buffer {
 public:
  Buffer() = default;
  /// Errors: UserError(memory).
  Buffer(std::shared_ptr<Memory> memory, std::size_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<Memory> memory_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace halfstep::backend

#include "backend/memory.h"

#include <cstring>
#include <utility>

#include "core/system.h"

namespace halfstep::backend {
namespace {

class PageableStaging final : public Staging {
 public:
  PageableStaging(Memory& memory, std::size_t bytes)
      : memory_(memory), bytes_(host_memory(), bytes) {}
  std::byte* data() override { return bytes_.data(); }
  void upload(void* address, std::size_t bytes) override {
    memory_.upload(bytes_.data(), address, bytes);
  }

 private:
  Memory& memory_;
  Buffer bytes_;
};

class HostMemory final : public Memory {
 public:
  std::byte* allocate(std::size_t bytes) override { return allocate_zeroed(bytes); }
  void release(std::byte* address) noexcept override { release_zeroed(address); }
  std::size_t alignment() const override { return AlignedBuffer::k_alignment; }
  std::uint64_t available_bytes() const override { return available_memory_bytes(); }
  bool is_host() const override { return true; }
  void upload(const void* host, void* address, std::size_t bytes) override {
    copy(host, address, bytes);
  }
  void download(const void* address, void* host, std::size_t bytes) override {
    copy(address, host, bytes);
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  std::unique_ptr<Staging> staging(std::size_t bytes) override {
    return pageable_staging(*this, bytes);
  }
};

}  // namespace

std::unique_ptr<Staging> pageable_staging(Memory& memory, std::size_t bytes) {
  return std::make_unique<PageableStaging>(memory, bytes);
}

const std::shared_ptr<Memory>& host_memory() {
  static const std::shared_ptr<Memory> k_host = std::make_shared<HostMemory>();
  return k_host;
}

Buffer::Buffer(std::shared_ptr<Memory> memory, std::size_t bytes)
    : memory_(std::move(memory)), data_(memory_->allocate(bytes)), bytes_(bytes) {}

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) memory_->release(data_);
}

}  // namespace halfstep::backend

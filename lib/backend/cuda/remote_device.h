#pragma once
// A device behind the boundary, with its memory.

#include <memory>

#include "backend/cuda/plugin_library.h"
#include "backend/device.h"
#include "backend/memory.h"

namespace halfstep::backend::cuda {

/// Errors of all members: UserError(memory) when the device has not enough of it, UserError
/// (unavailable) when there is no device, else InternalError with the words of the library.
class RemoteDevice final : public Memory, public Device {
 public:
  RemoteDevice(std::shared_ptr<PluginLibrary> library, const boundary::Options& options);
  RemoteDevice(const RemoteDevice&) = delete;
  RemoteDevice& operator=(const RemoteDevice&) = delete;
  ~RemoteDevice() override;

  std::byte* allocate(std::size_t bytes) override;
  void release(std::byte* address) noexcept override;
  std::size_t alignment() const override;
  std::uint64_t left() const override;
  bool is_host() const override { return false; }
  void upload(const void* host, void* address, std::size_t bytes) override;
  void download(const void* address, void* host, std::size_t bytes) override;
  void copy(const void* from, void* to, std::size_t bytes) override;

  Prepared prepare(const Kernel& row, const NodeView& node) override;
  void synchronize() override;
  std::unique_ptr<Recording> record(const std::function<void()>& enqueue) override;

 private:
  std::shared_ptr<PluginLibrary> library_;
  const boundary::Table& table_;
  boundary::Device* device_ = nullptr;
};

}  // namespace halfstep::backend::cuda

#pragma once
// A device behind the C boundary, with its memory.

#include <memory>
#include <unordered_map>

#include "backend/cuda/plugin_library.h"
#include "backend/device.h"
#include "backend/memory.h"
#include "comm/communicator.h"

namespace halfstep::backend::cuda {

/// Errors of all members: UserError(memory) when device memory does not suffice, UserError
/// (unavailable) when there is no device, else InternalError with the library's message.
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
  MemoryPeak peak() const override { return peak_; }
  bool is_host() const override { return false; }
  void upload(const void* host, void* address, std::size_t bytes) override;
  void download(const void* address, void* host, std::size_t bytes) override;
  void copy(const void* from, void* to, std::size_t bytes) override;
  std::unique_ptr<Staging> staging(std::size_t bytes) override;

  /// A new id under which ranks join. Errors: UserError(unavailable) without NCCL.
  std::string new_rank_id() const;
  /// Joins the device to those of the other ranks; blocks until all have called it. From then on
  /// blocking calls check the other ranks. Errors: UserError(unavailable), UserError(ranks).
  void join(const std::string& id, std::shared_ptr<comm::Communicator> ranks);

  Prepared prepare(const Kernel& row, const NodeView& node) override;
  void synchronize() override;
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& enqueue) override;
  std::unique_ptr<Event> make_event() override;

 private:
  struct MemoryInfo {
    std::uint64_t left = 0, total = 0;
  };
  MemoryInfo memory_info() const;
  /// Blocks until all enqueued work has completed, where it waits for other ranks. Errors:
  /// comm::RankLost, after which variables have any values.
  void wait_for_ranks();

  std::shared_ptr<PluginLibrary> library_;
  const boundary::Table& table_;
  boundary::Device* device_ = nullptr;
  std::unordered_map<const std::byte*, std::size_t> blocks_;  ///< bytes of each allocation
  std::uint64_t allocated_ = 0;                               ///< their sum
  MemoryPeak peak_;
  std::shared_ptr<comm::Communicator> ranks_;  ///< whose devices have joined
};

}  // namespace halfstep::backend::cuda

// The emulated vendor: host memory, and a queue as the stream.

#include "backend/cuda/vendor/vendor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <new>

#include "backend/cuda/vendor/emulated/libraries.h"
#include "backend/cuda/vendor/emulated/queue.h"
#include "backend/cuda/vendor/emulated/rank_sums.h"
#include "core/error.h"

namespace halfstep::backend::cuda {
namespace {

using emulated::Queue;

constexpr std::size_t k_memory_bytes = std::size_t{4} << 30;
// Uninitialized memory is NaN in every floating dtype.
constexpr int k_garbage = 0xff;

GpuInfo facts() {
  return {.name = "emulated device",
          .compute_capability = 90,
          .multiprocessors = 1,
          .memory_bytes = k_memory_bytes};
}

using Clock = std::chrono::steady_clock;

/// It may be destroyed before the queue has passed it, like CUDA's.
class EmulatedEvent final : public StreamEvent {
 public:
  explicit EmulatedEvent(Queue& queue) : queue_(queue) {}
  void record() override {
    state_->passed = false;
    queue_.push([state = state_] { *state = {.passed = true, .time = Clock::now()}; });
  }
  void wait() override { queue_.drain(state_->passed); }
  double seconds_since(const Event& begin) const override {
    const auto& other = dynamic_cast<const EmulatedEvent&>(begin);
    return std::chrono::duration<double>(state_->time - other.state_->time).count();
  }

 private:
  struct State {
    bool passed = true;
    Clock::time_point time = {};
  };
  Queue& queue_;
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

class EmulatedGraph final : public CapturedGraph {
 public:
  /// `alive`: counts it as long as it is there.
  EmulatedGraph(Queue& queue, std::vector<Queue::Attempt> calls, std::shared_ptr<int> alive)
      : queue_(queue), calls_(std::move(calls)), alive_(std::move(alive)) {
    ++*alive_;
  }
  EmulatedGraph(const EmulatedGraph&) = delete;
  EmulatedGraph& operator=(const EmulatedGraph&) = delete;
  ~EmulatedGraph() override { --*alive_; }
  std::size_t nodes() const override { return calls_.size(); }
  void launch() override {
    for (const Queue::Attempt& call : calls_) queue_.push_attempt(call);
  }

 private:
  Queue& queue_;
  std::vector<Queue::Attempt> calls_;
  std::shared_ptr<int> alive_;
};

class EmulatedVendor final : public Vendor {
 public:
  explicit EmulatedVendor(std::size_t limit) : facts_(facts()) {
    if (limit > 0) facts_.memory_bytes = std::min(facts_.memory_bytes, limit);
  }
  EmulatedVendor(const EmulatedVendor&) = delete;
  EmulatedVendor& operator=(const EmulatedVendor&) = delete;
  ~EmulatedVendor() override {
    for (const auto& [address, bytes] : blocks_) give_back(address);
  }

  void enter() override {}
  const GpuInfo& device() const override { return facts_; }
  Stream stream() override { return &queue_; }

  void* allocate(std::size_t bytes) override {
    expect_no_capture("allocate");
    if (bytes == 0 || bytes > memory().free) return nullptr;
    void* address = ::operator new (bytes, std::align_val_t{k_alignment}, std::nothrow);
    if (address == nullptr) return nullptr;
    std::memset(address, k_garbage, bytes);
    blocks_.emplace(address, bytes);
    used_ += bytes;
    return address;
  }
  void release(void* device) override {
    if (device == nullptr) return;
    expect_no_capture("release");
    queue_.drain();
    const auto block = blocks_.find(device);
    require(block != blocks_.end(), "release of memory that was not allocated here");
    used_ -= block->second;
    blocks_.erase(block);
    give_back(device);
  }
  Memory memory() const override {
    return {.free = facts_.memory_bytes - used_, .total = facts_.memory_bytes};
  }
  void* allocate_host(std::size_t bytes) override {
    return bytes == 0 ? nullptr
                      : ::operator new (bytes, std::align_val_t{k_alignment}, std::nothrow);
  }
  void release_host(void* host) override {
    if (host == nullptr) return;
    queue_.drain();
    give_back(host);
  }

  void upload(void* device, const void* host, std::size_t bytes) override {
    expect_inside(device, bytes, "upload");
    move(device, host, bytes);
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    expect_inside(device, bytes, "download");
    move(host, device, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    expect_inside(to, bytes, "copy");
    expect_inside(from, bytes, "copy");
    move(to, from, bytes);
  }
  void fill(void* device, std::uint8_t byte, std::size_t bytes) override {
    expect_inside(device, bytes, "fill");
    queue_.push([=] { std::memset(device, byte, bytes); });
  }

  void synchronize() override {
    expect_no_capture("synchronize");
    queue_.drain();
  }
  bool idle() override {
    expect_no_capture("idle");
    return queue_.advance();
  }
  std::unique_ptr<StreamEvent> event() override { return std::make_unique<EmulatedEvent>(queue_); }
  void begin_capture() override {
    expect_no_capture("begin_capture");
    queue_.begin_capture();
  }
  std::unique_ptr<CapturedGraph> end_capture() override {
    if (!queue_.capturing()) fail("end_capture: nothing is being captured");
    return std::make_unique<EmulatedGraph>(queue_, queue_.end_capture(), graphs_);
  }

  void join(const RankId& id, int rank, int ranks) override {
    ranks_ = std::make_unique<emulated::RankSums>(id, rank, ranks);
  }
  void start_sum(void* numbers,
                 std::int64_t count,
                 DType dtype,
                 comm::CollectiveKind kind) override {
    if (!ranks_) fail("start_sum: no ranks have joined");
    const std::size_t bytes = static_cast<std::size_t>(count) * size_bytes(dtype);
    expect_inside(numbers, bytes, "start_sum");
    std::vector<std::byte>& sum = sums_[numbers];
    queue_.push_attempt([this, &sum, numbers, count, dtype, kind, bytes] {
      auto* given = static_cast<std::byte*>(numbers);
      if (!ranks_->advance(given, count, dtype, kind)) return false;
      // Nobody may read it before wait_for_sum().
      sum.assign(given, given + bytes);
      std::memset(numbers, k_garbage, bytes);
      return true;
    });
  }
  void wait_for_sum(const void* numbers) override {
    const auto found = sums_.find(numbers);
    if (found == sums_.end()) fail("wait_for_sum: none was started there");
    queue_.push([&sum = found->second, to = const_cast<void*>(numbers)] {
      std::memcpy(to, sum.data(), sum.size());
    });
  }
  void abandon_sums() override {
    if (*graphs_ > 0) fail("abandon_sums: NCCL would wait for the captured graphs to be destroyed");
    if (ranks_) ranks_->abandon();
  }

  std::unique_ptr<Matmul> matmul(const MatmulKey& key) override {
    return emulated::prepare_matmul(key, &queue_);
  }
  std::unique_ptr<Convolution> convolution(const ConvKey& key) override {
    return emulated::prepare_convolution(key, &queue_);
  }

 private:
  [[noreturn]] static void fail(const std::string& text) {
    throw VendorError(Failure::failed, text);
  }
  static void give_back(void* address) {
    ::operator delete (address, std::align_val_t{k_alignment});
  }
  void expect_no_capture(const char* what) const {
    if (queue_.capturing()) fail(fmt::format("{}: not while a capture is on", what));
  }
  /// Checks that a copy stays inside of an allocated block of device memory.
  void expect_inside(const void* device, std::size_t bytes, const char* what) const {
    const auto* begin = static_cast<const std::byte*>(device);
    auto block = blocks_.upper_bound(const_cast<void*>(device));
    if (block != blocks_.begin()) {
      --block;
      if (begin + bytes <= static_cast<const std::byte*>(block->first) + block->second) return;
    }
    fail(fmt::format("{}: {} bytes outside of device memory", what, bytes));
  }
  void move(void* to, const void* from, std::size_t bytes) {
    queue_.push([=] { std::memmove(to, from, bytes); });
  }

  GpuInfo facts_;
  Queue queue_;
  std::map<void*, std::size_t> blocks_;
  std::size_t used_ = 0;
  std::unique_ptr<emulated::RankSums> ranks_;
  std::map<const void*, std::vector<std::byte>> sums_;      ///< by the address of their numbers
  std::shared_ptr<int> graphs_ = std::make_shared<int>(0);  ///< captured ones that are left
};

}  // namespace

const char* vendor_name() { return "emulated"; }

DeviceProbe probe() {
  return {.unavailable = {},
          .driver = "emulated",
          .runtime = "emulated",
          .cublas = "emulated",
          .cudnn = "emulated",
          .nccl = "",
          .devices = {facts()}};
}

std::unique_ptr<Vendor> open_vendor(const VendorOptions& options) {
  if (options.device != 0) {
    throw VendorError(Failure::unavailable,
                      fmt::format("no device {}: there is one emulated device, 0", options.device));
  }
  return std::make_unique<EmulatedVendor>(options.memory_limit);
}

}  // namespace halfstep::backend::cuda

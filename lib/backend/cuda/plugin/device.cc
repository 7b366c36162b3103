// An opened device: the vendor's stream and memory behind the interface of a Gpu.

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

#include "backend/cuda/kernels/stream.h"
#include "backend/cuda/plugin/prepare.h"
#include "core/error.h"

namespace halfstep::backend::cuda::plugin {
namespace {

[[noreturn]] void fail(Failure failure, const std::string& text) {
  switch (failure) {
    case Failure::unavailable:
      throw UserError(ErrorKind::unavailable, {}, text);
    case Failure::out_of_memory:
      throw UserError(ErrorKind::memory, {}, text);
    case Failure::ranks:
      throw UserError(ErrorKind::ranks, {}, text);
    case Failure::failed:
      break;
  }
  throw InternalError(text, std::source_location::current());
}

/// Calls body() and turns the errors of libraries and kernels into those of Gpu; `action` begins
/// their messages.
template <class F>
auto translating_errors(std::string_view action, F&& body) {
  try {
    return body();
  } catch (const VendorError& error) {
    fail(error.failure(), fmt::format("{}: {}", action, error.what()));
  } catch (const std::exception& error) {
    fail(Failure::failed, fmt::format("{}: {}", action, error.what()));
  }
}

class CapturedLaunches;

/// The state of a device that its launches, events and captured graphs share; they may outlive it.
struct Opened {
  std::unique_ptr<Vendor> vendor;
  std::unique_ptr<void, std::function<void(void*)>> tickets;
  DeviceContext context;
  std::set<CapturedLaunches*> graphs = {};

  /// translating_errors() with the device as the calling thread's current one.
  template <class F>
  auto call(std::string_view action, F&& body) const {
    return translating_errors(action, [&] {
      vendor->enter();
      return body();
    });
  }
  /// The same where an error is of no use, as in destructors.
  template <class F>
  void try_call(F&& body) const noexcept {
    try {
      vendor->enter();
      body();
    } catch (const std::exception&) {
      // A device that has failed reports its error at the next call that can.
    }
  }
};
using OpenedPtr = std::shared_ptr<Opened>;

class PluginLaunch final : public Launch {
 public:
  PluginLaunch(OpenedPtr opened, PreparedKernel kernel, std::string node)
      : opened_(std::move(opened)), kernel_(std::move(kernel)), node_(std::move(node)) {}
  PluginLaunch(const PluginLaunch&) = delete;
  PluginLaunch& operator=(const PluginLaunch&) = delete;
  ~PluginLaunch() override {
    opened_->try_call([&] { kernel_ = {}; });
  }

  void run(const Args& args) override {
    opened_->call(node_, [&] { kernel_.run(args); });
  }
  std::optional<Algorithm> algorithm() const override {
    if (kernel_.algorithm.empty()) return std::nullopt;
    return Algorithm{kernel_.algorithm, kernel_.tensor_cores};
  }

 private:
  OpenedPtr opened_;
  PreparedKernel kernel_;
  std::string node_;
};

class CapturedLaunches final : public CapturedGraph {
 public:
  CapturedLaunches(OpenedPtr opened, std::unique_ptr<CapturedGraph> graph)
      : opened_(std::move(opened)), graph_(std::move(graph)), nodes_(graph_->nodes()) {
    opened_->graphs.insert(this);
  }
  CapturedLaunches(const CapturedLaunches&) = delete;
  CapturedLaunches& operator=(const CapturedLaunches&) = delete;
  ~CapturedLaunches() override {
    opened_->graphs.erase(this);
    opened_->try_call([&] { graph_ = nullptr; });
  }

  void launch() override {
    opened_->call("the captured step", [&] {
      require(graph_ != nullptr, "a captured step is launched without the other ranks");
      graph_->launch();
    });
  }
  std::size_t nodes() const override { return nodes_; }
  /// Destroys the graph; one that is still running completes.
  void drop() { graph_ = nullptr; }

 private:
  OpenedPtr opened_;
  std::unique_ptr<CapturedGraph> graph_;  ///< nullptr once it is dropped
  std::size_t nodes_;
};

class PluginEvent final : public Event {
 public:
  explicit PluginEvent(OpenedPtr opened)
      : opened_(std::move(opened)),
        event_(opened_->call("an event", [&] { return opened_->vendor->event(); })) {}

  void record() override {
    opened_->call("an event", [&] { event_->record(); });
  }
  double seconds_since(const Event& begin) const override {
    return opened_->call("time of events", [&] {
      return event_->seconds_since(*dynamic_cast<const PluginEvent&>(begin).event_);
    });
  }
  /// Blocks until the last record() that was not captured has completed.
  void wait() {
    opened_->call("an event", [&] { event_->wait(); });
  }

 private:
  OpenedPtr opened_;
  std::unique_ptr<StreamEvent> event_;
};

/// Page-locked memory of the host.
class PinnedStaging final : public Staging {
 public:
  PinnedStaging(const OpenedPtr& opened, std::size_t bytes)
      : opened_(opened), uploaded_(opened), host_(opened->call("out of page-locked memory", [&] {
          return opened->vendor->allocate_host(bytes);
        })) {}
  PinnedStaging(const PinnedStaging&) = delete;
  PinnedStaging& operator=(const PinnedStaging&) = delete;
  ~PinnedStaging() override {
    opened_->try_call([&] { uploaded_.wait(); });
    opened_->try_call([&] { opened_->vendor->release_host(host_); });
  }

  std::byte* data() override {
    uploaded_.wait();
    return static_cast<std::byte*>(host_);
  }
  void upload(void* address, std::size_t bytes) override {
    opened_->call("copy to the device", [&] { opened_->vendor->upload(address, host_, bytes); });
    uploaded_.record();
  }

 private:
  OpenedPtr opened_;
  PluginEvent uploaded_;
  void* host_;
};

class OpenedGpu final : public Gpu {
 public:
  explicit OpenedGpu(OpenedPtr opened) : opened_(std::move(opened)), vendor_(*opened_->vendor) {}
  OpenedGpu(const OpenedGpu&) = delete;
  OpenedGpu& operator=(const OpenedGpu&) = delete;
  ~OpenedGpu() override {
    opened_->try_call([] {});
    drop_graphs();
  }

  std::byte* allocate(std::size_t bytes) override {
    if (bytes == 0) return nullptr;
    void* address = opened_->call("out of device memory", [&] {
      void* memory = vendor_.allocate(bytes);
      if (memory == nullptr) {
        constexpr double k_mebibyte = 1024.0 * 1024.0;
        throw VendorError(Failure::out_of_memory,
                          fmt::format("{:.1f} MiB are needed, {:.1f} MiB are free",
                                      static_cast<double>(bytes) / k_mebibyte,
                                      static_cast<double>(vendor_.memory().free) / k_mebibyte));
      }
      vendor_.fill(memory, 0, bytes);
      return memory;
    });
    auto* block = static_cast<std::byte*>(address);
    blocks_[block] = bytes;
    allocated_ += bytes;
    const Vendor::Memory now = memory();
    peak_.allocated = std::max(peak_.allocated, allocated_);
    peak_.in_use = std::max<std::uint64_t>(peak_.in_use, now.total - now.free);
    return block;
  }
  void release(std::byte* address) noexcept override {
    if (const auto block = blocks_.find(address); block != blocks_.end()) {
      allocated_ -= block->second;
      blocks_.erase(block);
    }
    opened_->try_call([&] {
      vendor_.synchronize();
      vendor_.release(address);
    });
  }
  std::size_t alignment() const override { return k_alignment; }
  std::uint64_t available_bytes() const override { return memory().free; }
  MemoryPeak peak() const override { return peak_; }
  bool is_host() const override { return false; }

  void upload(const void* host, void* address, std::size_t bytes) override {
    wait_for_ranks();
    if (bytes == 0) return;
    opened_->call("copy to the device", [&] {
      vendor_.upload(address, host, bytes);
      vendor_.synchronize();
    });
  }
  void download(const void* address, void* host, std::size_t bytes) override {
    if (bytes == 0) return;
    wait_for_ranks();
    opened_->call("copy from the device", [&] {
      vendor_.download(host, address, bytes);
      vendor_.synchronize();
    });
  }
  void copy(const void* from, void* to, std::size_t bytes) override {
    if (bytes > 0) opened_->call("copy on the device", [&] { vendor_.copy(to, from, bytes); });
  }
  std::unique_ptr<Staging> staging(std::size_t bytes) override {
    return std::make_unique<PinnedStaging>(opened_, bytes);
  }

  std::string new_rank_id() const override {
    const RankId id = translating_errors("sums over ranks", [] { return cuda::new_rank_id(); });
    return {id.begin(), id.end()};
  }
  void join(const std::string& id, std::shared_ptr<comm::Communicator> ranks) override {
    RankId given{};
    require(id.size() == given.size(), "an id of {} bytes", id.size());
    std::copy(id.begin(), id.end(), given.begin());
    opened_->call("sums over ranks", [&] { vendor_.join(given, ranks->rank(), ranks->size()); });
    ranks_ = std::move(ranks);
  }

  Prepared prepare(const Kernel& row, const NodeView& node) override {
    const std::string& name = node.node.name;
    PreparedKernel kernel =
        opened_->call(name, [&] { return implementation(row.name)(node, opened_->context); });
    const std::size_t workspace_bytes = kernel.workspace_bytes;
    return {std::make_unique<PluginLaunch>(opened_, std::move(kernel), name), workspace_bytes};
  }
  void synchronize() override {
    wait_for_ranks();
    opened_->call("the step", [&] { vendor_.synchronize(); });
  }
  std::unique_ptr<CapturedGraph> capture(const std::function<void()>& enqueue) override {
    opened_->call("begin of the capture", [&] { vendor_.begin_capture(); });
    try {
      enqueue();
    } catch (...) {
      opened_->try_call([&] { vendor_.end_capture(); });
      throw;
    }
    return opened_->call("end of the capture", [&] {
      return std::make_unique<CapturedLaunches>(opened_, vendor_.end_capture());
    });
  }
  std::unique_ptr<Event> make_event() override { return std::make_unique<PluginEvent>(opened_); }

 private:
  Vendor::Memory memory() const {
    return opened_->call("memory of the device", [&] { return vendor_.memory(); });
  }

  /// NCCL ends a communicator only when no captured graph with its sums is left.
  void drop_graphs() {
    for (CapturedLaunches* graph : opened_->graphs) graph->drop();
  }

  /// Blocks until all enqueued work has completed, where it waits for other ranks. Errors:
  /// comm::RankLost, after which variables have any values.
  void wait_for_ranks() {
    if (!ranks_) return;
    try {
      const std::shared_ptr<comm::Communicator> ranks = ranks_;
      ranks->wait_for([&] { return opened_->call("the step", [&] { return vendor_.idle(); }); });
    } catch (const comm::RankLost&) {
      // The launches complete then, and results can be copied without the other ranks.
      ranks_ = nullptr;
      opened_->call("sums over ranks", [&] {
        drop_graphs();
        vendor_.abandon_sums();
      });
      throw;
    }
  }

  std::shared_ptr<comm::Communicator> ranks_;  ///< whose devices have joined; outlive `opened_`
  OpenedPtr opened_;
  Vendor& vendor_;
  std::unordered_map<const std::byte*, std::size_t> blocks_;  ///< bytes of each allocation
  std::uint64_t allocated_ = 0;                               ///< their sum
  MemoryPeak peak_;
};

}  // namespace

std::shared_ptr<Gpu> open_gpu(const DeviceOptions& options) {
  return translating_errors("cannot open the device", [&] {
    std::unique_ptr<Vendor> vendor =
        open_vendor({.device = options.index,
                     .autotune = options.measure ? Autotune::measure : Autotune::heuristic,
                     .cache_folder = options.tuning_folder,
                     .memory_limit = static_cast<std::size_t>(options.memory_limit)});
    constexpr std::size_t k_ticket_bytes = kernels::Tickets::k_count * sizeof(unsigned);
    std::unique_ptr<void, std::function<void(void*)>> tickets(vendor->allocate(k_ticket_bytes),
                                                              [&from = *vendor](void* address) {
                                                                try {
                                                                  from.release(address);
                                                                } catch (const std::exception&) {
                                                                  // A device that has failed cannot
                                                                  // release it.
                                                                }
                                                              });
    if (!tickets) throw VendorError(Failure::out_of_memory, "not even the tickets of kernels fit");
    vendor->fill(tickets.get(), 0, k_ticket_bytes);
    const DeviceContext context{.vendor = *vendor,
                                .float32 = options.tf32 ? Float32Math::tf32 : Float32Math::ieee,
                                .deterministic = options.deterministic,
                                .tickets = {static_cast<unsigned*>(tickets.get())}};
    return std::make_shared<OpenedGpu>(
        std::make_shared<Opened>(Opened{std::move(vendor), std::move(tickets), context}));
  });
}

}  // namespace halfstep::backend::cuda::plugin

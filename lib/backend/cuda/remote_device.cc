#include "backend/cuda/remote_device.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/cuda/node_description.h"
#include "core/error.h"

namespace halfstep::backend::cuda {
namespace {

using boundary::Status;
using boundary::Table;

void check(const Table& table, Status status, const char* what) {
  if (status == Status::ok) return;
  const std::string text = fmt::format("{}: {}", what, table.last_error());
  if (status == Status::memory) throw UserError(ErrorKind::memory, {}, text);
  if (status == Status::unavailable) throw UserError(ErrorKind::unavailable, {}, text);
  if (status == Status::ranks) throw UserError(ErrorKind::ranks, {}, text);
  require(false, "{}", text);
}

class RemoteLaunch final : public Launch {
 public:
  RemoteLaunch(std::shared_ptr<PluginLibrary> library, boundary::Launch* launch, std::string node)
      : library_(std::move(library)), launch_(launch), node_(std::move(node)) {}
  RemoteLaunch(const RemoteLaunch&) = delete;
  RemoteLaunch& operator=(const RemoteLaunch&) = delete;
  ~RemoteLaunch() override { library_->table().discard(launch_); }

  void run(const Args& args) override {
    in_.clear();
    out_.clear();
    for (const TensorView& view : args.in) in_.push_back(view.data);
    for (const TensorView& view : args.out) out_.push_back(view.data);
    check(library_->table(),
          library_->table().run(launch_, in_.data(), out_.data(), args.workspace),
          node_.c_str());
  }
  std::optional<Algorithm> algorithm() const override {
    std::int32_t tensor_cores = -1;
    Algorithm algorithm{library_->table().describe(launch_, &tensor_cores)};
    if (algorithm.text.empty()) return std::nullopt;
    if (tensor_cores >= 0) algorithm.tensor_cores = tensor_cores != 0;
    return algorithm;
  }

 private:
  std::shared_ptr<PluginLibrary> library_;
  boundary::Launch* launch_;
  std::string node_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
};

class RemoteCapturedGraph final : public CapturedGraph {
 public:
  RemoteCapturedGraph(std::shared_ptr<PluginLibrary> library, boundary::CapturedGraph* captured)
      : library_(std::move(library)), captured_(captured) {}
  RemoteCapturedGraph(const RemoteCapturedGraph&) = delete;
  RemoteCapturedGraph& operator=(const RemoteCapturedGraph&) = delete;
  ~RemoteCapturedGraph() override { library_->table().forget(captured_); }

  void launch() override {
    check(library_->table(), library_->table().launch_graph(captured_), "the captured step");
  }
  std::size_t nodes() const override { return library_->table().graph_nodes(captured_); }

 private:
  std::shared_ptr<PluginLibrary> library_;
  boundary::CapturedGraph* captured_;
};

class RemoteStaging final : public Staging {
 public:
  RemoteStaging(std::shared_ptr<PluginLibrary> library, boundary::Device* device, std::size_t bytes)
      : library_(std::move(library)), table_(library_->table()), device_(device) {
    check(table_, table_.make_event(device_, &uploaded_), "an event");
    const Status status = table_.allocate_host(device_, bytes, &host_);
    if (status != Status::ok) table_.destroy_event(uploaded_);
    check(table_, status, "out of page-locked memory");
  }
  RemoteStaging(const RemoteStaging&) = delete;
  RemoteStaging& operator=(const RemoteStaging&) = delete;
  ~RemoteStaging() override {
    table_.wait(uploaded_);
    table_.destroy_event(uploaded_);
    table_.release_host(device_, host_);
  }

  std::byte* data() override {
    check(table_, table_.wait(uploaded_), "copy to the device");
    return static_cast<std::byte*>(host_);
  }
  void upload(void* address, std::size_t bytes) override {
    check(table_, table_.upload(device_, host_, address, bytes, uploaded_), "copy to the device");
  }

 private:
  std::shared_ptr<PluginLibrary> library_;
  const Table& table_;
  boundary::Device* device_;
  boundary::Event* uploaded_ = nullptr;
  void* host_ = nullptr;
};

class RemoteEvent final : public Event {
 public:
  RemoteEvent(std::shared_ptr<PluginLibrary> library, boundary::Event* event)
      : library_(std::move(library)), event_(event) {}
  RemoteEvent(const RemoteEvent&) = delete;
  RemoteEvent& operator=(const RemoteEvent&) = delete;
  ~RemoteEvent() override { library_->table().destroy_event(event_); }

  void record() override { check(library_->table(), library_->table().record(event_), "an event"); }
  double seconds_since(const Event& begin) const override {
    double seconds = 0;
    const boundary::Event* from = dynamic_cast<const RemoteEvent&>(begin).event_;
    check(library_->table(), library_->table().elapsed(from, event_, &seconds), "time of events");
    return seconds;
  }

 private:
  std::shared_ptr<PluginLibrary> library_;
  boundary::Event* event_;
};

}  // namespace

RemoteDevice::RemoteDevice(std::shared_ptr<PluginLibrary> library, const boundary::Options& options)
    : library_(std::move(library)), table_(library_->table()) {
  check(table_, table_.open(&options, &device_), "cannot open the device");
}

RemoteDevice::~RemoteDevice() { table_.close(device_); }

std::byte* RemoteDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* address = nullptr;
  check(table_, table_.allocate(device_, bytes, &address), "out of device memory");
  auto* block = static_cast<std::byte*>(address);
  blocks_[block] = bytes;
  allocated_ += bytes;
  const MemoryInfo now = memory_info();
  peak_.allocated = std::max(peak_.allocated, allocated_);
  peak_.in_use = std::max(peak_.in_use, now.total - now.left);
  return block;
}

void RemoteDevice::release(std::byte* address) noexcept {
  if (const auto block = blocks_.find(address); block != blocks_.end()) {
    allocated_ -= block->second;
    blocks_.erase(block);
  }
  table_.release(device_, address);
}

std::size_t RemoteDevice::alignment() const { return boundary::k_alignment; }

RemoteDevice::MemoryInfo RemoteDevice::memory_info() const {
  MemoryInfo info;
  check(table_, table_.memory(device_, &info.left, &info.total), "memory of the device");
  return info;
}

std::uint64_t RemoteDevice::left() const { return memory_info().left; }

std::string RemoteDevice::new_rank_id() const {
  std::string id(boundary::k_rank_id_bytes, '\0');
  check(table_, table_.new_rank_id(id.data()), "sums over ranks");
  return id;
}

void RemoteDevice::join(const std::string& id, std::shared_ptr<comm::Communicator> ranks) {
  require(id.size() == boundary::k_rank_id_bytes, "an id of {} bytes", id.size());
  check(table_, table_.join(device_, id.data(), ranks->rank(), ranks->size()), "sums over ranks");
  ranks_ = std::move(ranks);
}

void RemoteDevice::wait_for_ranks() {
  if (!ranks_) return;
  try {
    const std::shared_ptr<comm::Communicator> ranks = ranks_;
    ranks->wait_for([&] {
      std::int32_t idle = 0;
      check(table_, table_.idle(device_, &idle), "the step");
      return idle != 0;
    });
  } catch (const comm::RankLost&) {
    // The launches complete then, and results can be copied without the other ranks.
    ranks_ = nullptr;
    check(table_, table_.abandon_sums(device_), "sums over ranks");
    throw;
  }
}

void RemoteDevice::upload(const void* host, void* address, std::size_t bytes) {
  wait_for_ranks();
  if (bytes == 0) return;
  check(table_, table_.upload(device_, host, address, bytes, nullptr), "copy to the device");
}

void RemoteDevice::download(const void* address, void* host, std::size_t bytes) {
  if (bytes == 0) return;
  wait_for_ranks();
  check(table_, table_.download(device_, address, host, bytes), "copy from the device");
}

void RemoteDevice::copy(const void* from, void* to, std::size_t bytes) {
  if (bytes > 0) check(table_, table_.copy(device_, from, to, bytes), "copy on the device");
}

std::unique_ptr<Staging> RemoteDevice::staging(std::size_t bytes) {
  return std::make_unique<RemoteStaging>(library_, device_, bytes);
}

Prepared RemoteDevice::prepare(const Kernel& row, const NodeView& node) {
  const NodeDescription description(node);
  boundary::Launch* launch = nullptr;
  std::uint64_t workspace_bytes = 0;
  // The names of kernels are literals, hence null-terminated.
  check(table_,
        table_.prepare(device_, row.name.data(), &description.node(), &launch, &workspace_bytes),
        node.node.name.c_str());
  return {std::make_unique<RemoteLaunch>(library_, launch, node.node.name), workspace_bytes};
}

void RemoteDevice::synchronize() {
  wait_for_ranks();
  check(table_, table_.synchronize(device_), "the step");
}

std::unique_ptr<CapturedGraph> RemoteDevice::capture(const std::function<void()>& enqueue) {
  check(table_, table_.begin_capture(device_), "begin of the capture");
  boundary::CapturedGraph* captured = nullptr;
  try {
    enqueue();
  } catch (...) {
    if (table_.end_capture(device_, &captured) == Status::ok) table_.forget(captured);
    throw;
  }
  check(table_, table_.end_capture(device_, &captured), "end of the capture");
  return std::make_unique<RemoteCapturedGraph>(library_, captured);
}

std::unique_ptr<Event> RemoteDevice::make_event() {
  boundary::Event* event = nullptr;
  check(table_, table_.make_event(device_, &event), "an event");
  return std::make_unique<RemoteEvent>(library_, event);
}

}  // namespace halfstep::backend::cuda

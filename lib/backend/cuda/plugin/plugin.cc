// The plugin's end of the boundary. Each call converts exceptions to a status and stores their text
// for last_error().

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <set>

#include "backend/cuda/boundary.h"
#include "backend/cuda/kernels/stream.h"
#include "backend/cuda/plugin/prepare.h"
#include "core/concatenate.h"
#include "core/error.h"

namespace halfstep::backend::cuda {

// The definitions of the boundary's opaque types.
struct boundary::Device {
  std::unique_ptr<Vendor> vendor;
  std::unique_ptr<void, std::function<void(void*)>> tickets;
  plugin::Machine machine;
  std::set<CapturedGraph*> graphs = {};
};
struct boundary::Launch {
  Device* device;
  plugin::Work work;
};
struct boundary::CapturedGraph {
  Device* device;                              ///< nullptr once it is closed
  std::unique_ptr<cuda::CapturedGraph> graph;  ///< nullptr once it is dropped
  std::uint64_t nodes;
};
struct boundary::Event {
  Device* device;
  std::unique_ptr<cuda::Event> event;
};

namespace plugin {
namespace {

using boundary::Status;

/// The kernels of this plugin.
std::span<const Row> rows() {
  static const std::vector<Row> k_rows = concatenate<Row>({ahead_rows(),
                                                           array_rows(),
                                                           attention_rows(),
                                                           collective_rows(),
                                                           elementwise_rows(),
                                                           fused_product_rows(),
                                                           layer_rows(),
                                                           product_rows(),
                                                           random_rows(),
                                                           recurrent_rows(),
                                                           reduce_rows(),
                                                           update_rows()});
  return k_rows;
}

std::string& error_text() {
  thread_local std::string text;
  return text;
}

Status fail(Status status, const char* text) {
  error_text() = text;
  return status;
}

Status status_of(Failure failure) {
  switch (failure) {
    case Failure::unavailable:
      return Status::unavailable;
    case Failure::out_of_memory:
      return Status::memory;
    case Failure::ranks:
      return Status::ranks;
    case Failure::failed:
      break;
  }
  return Status::failed;
}

template <class F>
Status fenced(F&& body) noexcept {
  try {
    body();
    return Status::ok;
  } catch (const VendorError& error) {
    return fail(status_of(error.failure()), error.what());
  } catch (const std::exception& error) {
    return fail(Status::failed, error.what());
  } catch (...) {
    return fail(Status::failed, "an unknown error");
  }
}

/// The same with the device as the calling thread's current one.
template <class F>
Status on(const boundary::Device* device, F&& body) noexcept {
  return fenced([&] {
    device->vendor->enter();
    body();
  });
}

void copy_text(const std::string& from, char* to, std::size_t capacity) {
  const std::size_t length = std::min(from.size(), capacity - 1);
  std::memcpy(to, from.data(), length);
  to[length] = '\0';
}
template <std::size_t n>
void copy_text(const std::string& from, char (&to)[n]) {
  copy_text(from, to, n);
}

const char* last_error() { return error_text().c_str(); }

Status probe_devices(boundary::Versions* versions, std::int32_t* devices) {
  const Probe found = probe();
  copy_text(found.driver, versions->driver);
  copy_text(found.runtime, versions->runtime);
  copy_text(found.cublas, versions->cublas);
  copy_text(found.cudnn, versions->cudnn);
  *devices = static_cast<std::int32_t>(found.devices.size());
  return found.why_not.empty() ? Status::ok : fail(Status::unavailable, found.why_not.c_str());
}

void nccl(char* version, std::uint64_t capacity) { copy_text(nccl_version(), version, capacity); }

Status facts_of(std::int32_t device, boundary::DeviceFacts* facts) {
  const Probe found = probe();
  if (device < 0 || static_cast<std::size_t>(device) >= found.devices.size()) {
    return fail(Status::unavailable, "there is no such device");
  }
  const DeviceFacts& from = found.devices[static_cast<std::size_t>(device)];
  copy_text(from.name, facts->name);
  copy_text(from.uuid, facts->uuid);
  facts->compute_capability = from.capability;
  facts->multiprocessors = from.multiprocessors;
  facts->memory_bytes = from.total_bytes;
  return Status::ok;
}

const char* row_name(std::int32_t index) {
  return static_cast<std::size_t>(index) < rows().size()
             ? rows()[static_cast<std::size_t>(index)].name.data()
             : nullptr;
}

Status open(const boundary::Options* options, boundary::Device** device) {
  return fenced([&] {
    VendorOptions wanted;
    wanted.device = options->device;
    wanted.autotune = options->measure != 0 ? Autotune::measure : Autotune::heuristic;
    wanted.cache_folder = options->tuning_folder;
    wanted.memory_limit = options->memory_limit;
    std::unique_ptr<Vendor> vendor = open_vendor(wanted);
    constexpr std::size_t k_ticket_bytes = kernels::Tickets::k_count * sizeof(unsigned);
    std::unique_ptr<void, std::function<void(void*)>> tickets(
        vendor->allocate(k_ticket_bytes),
        // A device that has failed cannot release it.
        [&opened = *vendor](void* address) { fenced([&] { opened.release(address); }); });
    if (!tickets) throw VendorError(Failure::out_of_memory, "not even the tickets of kernels fit");
    vendor->fill(tickets.get(), 0, k_ticket_bytes);
    const Machine machine{.vendor = *vendor,
                          .float32 = options->tf32 != 0 ? Float32Math::tf32 : Float32Math::ieee,
                          .deterministic = options->deterministic != 0,
                          .tickets = {static_cast<unsigned*>(tickets.get())}};
    *device = new boundary::Device{std::move(vendor), std::move(tickets), machine};
  });
}

/// NCCL ends a communicator only when no captured graph with its sums is left. A graph that is
/// still running completes.
void drop_graphs(boundary::Device& device) {
  for (boundary::CapturedGraph* captured : device.graphs) captured->graph = nullptr;
}

void close(boundary::Device* device) {
  on(device, [] {});
  drop_graphs(*device);
  for (boundary::CapturedGraph* captured : device->graphs) captured->device = nullptr;
  delete device;
}

Status synchronize(boundary::Device* device) {
  return on(device, [&] { device->vendor->synchronize(); });
}

Status idle(boundary::Device* device, std::int32_t* idle) {
  return on(device, [&] { *idle = device->vendor->idle() ? 1 : 0; });
}

Status make_rank_id(char* id) {
  return fenced([&] {
    const RankId made = new_rank_id();
    std::copy(made.begin(), made.end(), id);
  });
}

Status join(boundary::Device* device, const char* id, std::int32_t rank, std::int32_t ranks) {
  return on(device, [&] {
    RankId given;
    std::copy_n(id, given.size(), given.begin());
    device->vendor->join(given, rank, ranks);
  });
}

Status abandon_sums(boundary::Device* device) {
  return on(device, [&] {
    drop_graphs(*device);
    device->vendor->abandon_sums();
  });
}

Status allocate(boundary::Device* device, std::uint64_t bytes, void** address) {
  return on(device, [&] {
    *address = device->vendor->allocate(bytes);
    if (*address == nullptr) {
      constexpr double k_mebibyte = 1024.0 * 1024.0;
      throw VendorError(
          Failure::out_of_memory,
          fmt::format("{:.1f} MiB are needed, {:.1f} MiB are free",
                      static_cast<double>(bytes) / k_mebibyte,
                      static_cast<double>(device->vendor->memory().free) / k_mebibyte));
    }
    device->vendor->fill(*address, 0, bytes);
  });
}

void release(boundary::Device* device, void* address) {
  on(device, [&] {
    device->vendor->synchronize();
    device->vendor->release(address);
  });
}

Status memory(boundary::Device* device, std::uint64_t* left, std::uint64_t* total) {
  return on(device, [&] {
    const Vendor::Memory memory = device->vendor->memory();
    *left = memory.free;
    *total = memory.total;
  });
}

Status allocate_host(boundary::Device* device, std::uint64_t bytes, void** address) {
  return on(device, [&] { *address = device->vendor->allocate_host(bytes); });
}

void release_host(boundary::Device* device, void* address) {
  on(device, [&] { device->vendor->release_host(address); });
}

/// Blocks until the copy has completed, unless an event is recorded after it.
Status upload(boundary::Device* device,
              const void* host,
              void* address,
              std::uint64_t bytes,
              boundary::Event* uploaded) {
  return on(device, [&] {
    device->vendor->upload(address, host, bytes);
    if (uploaded == nullptr) {
      device->vendor->synchronize();
    } else {
      uploaded->event->record();
    }
  });
}

Status download(boundary::Device* device, const void* address, void* host, std::uint64_t bytes) {
  return on(device, [&] {
    device->vendor->download(host, address, bytes);
    device->vendor->synchronize();
  });
}

Status copy(boundary::Device* device, const void* from, void* to, std::uint64_t bytes) {
  return on(device, [&] { device->vendor->copy(to, from, bytes); });
}

Status prepare(boundary::Device* device,
               const char* row,
               const boundary::Node* node,
               boundary::Launch** launch,
               std::uint64_t* workspace_bytes) {
  const auto found = std::find_if(
      rows().begin(), rows().end(), [&](const Row& candidate) { return candidate.name == row; });
  if (found == rows().end()) return fail(Status::unsupported, "this plugin has no such kernel");
  return on(device, [&] {
    auto made = std::make_unique<boundary::Launch>(boundary::Launch{device, {}});
    made->work = found->prepare(Facts(*node), device->machine);
    *workspace_bytes = made->work.workspace_bytes;
    *launch = made.release();
  });
}

Status run(boundary::Launch* launch,
           const void* const* inputs,
           void* const* outputs,
           void* workspace) {
  return on(launch->device, [&] {
    launch->work.run({inputs, outputs, static_cast<std::byte*>(workspace)});
  });
}

void discard(boundary::Launch* launch) {
  on(launch->device, [] {});
  delete launch;
}

const char* describe(const boundary::Launch* launch, std::int32_t* tensor_cores) {
  const std::optional<bool>& uses = launch->work.tensor_cores;
  *tensor_cores = !uses ? -1 : *uses ? 1 : 0;
  return launch->work.algorithm.c_str();
}

Status begin_capture(boundary::Device* device) {
  return on(device, [&] { device->vendor->begin_capture(); });
}

Status end_capture(boundary::Device* device, boundary::CapturedGraph** captured) {
  return on(device, [&] {
    std::unique_ptr<CapturedGraph> graph = device->vendor->end_capture();
    const std::uint64_t nodes = graph->nodes();
    *captured = new boundary::CapturedGraph{device, std::move(graph), nodes};
    device->graphs.insert(*captured);
  });
}

Status launch_graph(boundary::CapturedGraph* captured) {
  return on(captured->device, [&] {
    require(captured->graph != nullptr, "a captured step is launched without the other ranks");
    captured->graph->launch();
  });
}

std::uint64_t graph_nodes(const boundary::CapturedGraph* captured) { return captured->nodes; }

void forget(boundary::CapturedGraph* captured) {
  if (captured->device != nullptr) captured->device->graphs.erase(captured);
  delete captured;
}

Status make_event(boundary::Device* device, boundary::Event** event) {
  return on(device, [&] { *event = new boundary::Event{device, device->vendor->event()}; });
}

Status record(boundary::Event* event) {
  return on(event->device, [&] { event->event->record(); });
}

Status wait(boundary::Event* event) {
  return on(event->device, [&] { event->event->wait(); });
}

Status elapsed(const boundary::Event* begin, const boundary::Event* end, double* seconds) {
  return on(end->device, [&] { *seconds = end->event->seconds_since(*begin->event); });
}

void destroy_event(boundary::Event* event) { delete event; }

}  // namespace
}  // namespace plugin

extern "C" __attribute__((visibility("default"))) const boundary::Table* halfstep_cuda_boundary() {
  static const boundary::Table k_table{.abi = boundary::k_abi,
                                       .flavour = vendor_name(),
                                       .last_error = plugin::last_error,
                                       .probe = plugin::probe_devices,
                                       .nccl = plugin::nccl,
                                       .facts = plugin::facts_of,
                                       .row = plugin::row_name,
                                       .open = plugin::open,
                                       .close = plugin::close,
                                       .synchronize = plugin::synchronize,
                                       .idle = plugin::idle,
                                       .new_rank_id = plugin::make_rank_id,
                                       .join = plugin::join,
                                       .abandon_sums = plugin::abandon_sums,
                                       .allocate = plugin::allocate,
                                       .release = plugin::release,
                                       .allocate_host = plugin::allocate_host,
                                       .release_host = plugin::release_host,
                                       .memory = plugin::memory,
                                       .upload = plugin::upload,
                                       .download = plugin::download,
                                       .copy = plugin::copy,
                                       .prepare = plugin::prepare,
                                       .run = plugin::run,
                                       .discard = plugin::discard,
                                       .describe = plugin::describe,
                                       .begin_capture = plugin::begin_capture,
                                       .end_capture = plugin::end_capture,
                                       .launch_graph = plugin::launch_graph,
                                       .graph_nodes = plugin::graph_nodes,
                                       .forget = plugin::forget,
                                       .make_event = plugin::make_event,
                                       .record = plugin::record,
                                       .wait = plugin::wait,
                                       .elapsed = plugin::elapsed,
                                       .destroy_event = plugin::destroy_event};
  return &k_table;
}

}  // namespace halfstep::backend::cuda

#pragma once
// The C boundary between the program and its CUDA plugin. The plugin exports one function, which
// returns a table of functions. Only plain data crosses it, and no exceptions: a call that fails
// returns a status, and last_error() returns the reason.

#include <cstddef>
#include <cstdint>

namespace halfstep::backend::cuda::boundary {

extern "C" {

/// Incremented with every change of this file; a plugin with another number is refused.
constexpr std::uint32_t k_abi = 7;

constexpr std::size_t k_max_extents = 8;
/// Alignment in bytes of allocations, tensors and workspaces, as the vendor's libraries need it.
constexpr std::size_t k_alignment = 256;
constexpr std::size_t k_rank_id_bytes = 128;

enum class Status : std::int32_t {
  ok = 0,
  unavailable = 1,  ///< no driver, no device, or a device that is too old
  memory = 2,       ///< not enough device memory
  unsupported = 3,  ///< no kernel of that name, or it cannot run this node
  failed = 4,       ///< an error of the driver or a library; the device is unusable from here on
  ranks = 5,        ///< another rank of the run, or the network to it
};

/// dtype (the number of a halfstep::DType) and extents of a dense row-major tensor.
struct Type {
  std::int32_t dtype;
  std::int32_t rank;
  std::int64_t dims[k_max_extents];
};

/// Integers known at compile time of the plan; `values` is null where they are not constant.
struct Integers {
  std::int64_t count;
  const std::int64_t* values;
};

enum class AttrKind : std::int32_t {
  boolean,
  integer,
  real,
  text,
  dtype,
  shape,
  integers,
  reals,
  dtypes,
};

/// One attribute: `count` integers (boolean, integer, dtype, shape, integers, dtypes), reals
/// (real, reals) or characters (text).
struct Attr {
  const char* name;
  AttrKind kind;
  std::int64_t count;
  const std::int64_t* integers;
  const double* reals;
  const char* text;
};

/// A node of the graph as its kernel needs it. All pointers are valid during the call only.
struct Node {
  const char* op;
  const char* name;
  std::int32_t inputs, outputs, attrs;
  const Type* input_types;
  const Integers* constants;  ///< per input
  const Type* output_types;
  const Attr* attr_list;  ///< sorted by name
};

/// "13.0"; empty for an absent component. `driver` is the newest CUDA version that it supports.
struct Versions {
  char driver[32], runtime[32], cublas[32], cudnn[32];
};

struct DeviceFacts {
  char name[256];
  char uuid[64];  ///< "GPU-...", the same in all processes of the machine; "" when emulated
  std::int32_t compute_capability;  ///< 90 for sm_90
  std::int32_t multiprocessors;
  std::uint64_t memory_bytes;
};

/// Compute options of a device.
struct Options {
  std::int32_t device;  ///< index in the driver's order
  std::int32_t tf32;  ///< whether float32 matmuls and convolutions may round their operands to TF32
  std::int32_t deterministic;  ///< whether equal runs must be bit-identical
  std::int32_t measure;        ///< whether to time the candidates of a matmul or convolution
  const char* tuning_folder;   ///< folder of the measured choices; empty: they are not stored
  std::uint64_t memory_limit;  ///< limit on allocated bytes; 0: all device memory
};

struct Device;         ///< an opened device with its stream and libraries
struct Launch;         ///< a prepared kernel
struct CapturedGraph;  ///< a captured graph
struct Event;          ///< a point in the order of launches

/// The functions of a plugin. Addresses of tensors and workspaces are device addresses.
struct Table {
  std::uint32_t abi;
  const char* flavour;  ///< "cuda", or "emulated": host memory instead of a device

  /// The message of this thread's last failed call.
  const char* (*last_error)();
  /// Versions and the number of devices; `unavailable` where no device can run, with the versions
  /// of the components that are installed.
  Status (*probe)(Versions* versions, std::int32_t* devices);
  /// The version of NCCL, which it loads; "" where there is none. `capacity` bytes at most.
  void (*nccl)(char* version, std::uint64_t capacity);
  Status (*facts)(std::int32_t device, DeviceFacts* facts);
  /// The names of the kernels it can prepare; null past the last.
  const char* (*row)(std::int32_t index);

  Status (*open)(const Options* options, Device** device);
  void (*close)(Device* device);
  /// Blocks until all enqueued work has completed.
  Status (*synchronize)(Device* device);
  /// Sets whether all enqueued work has completed. Does not block.
  Status (*idle)(Device* device, std::int32_t* idle);
  /// The k_rank_id_bytes of a new id under which ranks join.
  Status (*new_rank_id)(char* id);
  /// Blocks until all ranks have called it. From then on launches may add over them.
  Status (*join)(Device* device, const char* id, std::int32_t rank, std::int32_t ranks);
  /// Ends the sums over the ranks, without their results. No captured graph can be launched then.
  Status (*abandon_sums)(Device* device);
  /// Zero-filled, aligned to k_alignment.
  Status (*allocate)(Device* device, std::uint64_t bytes, void** address);
  void (*release)(Device* device, void* address);
  /// Page-locked memory of the host. Released, it must not be in use.
  Status (*allocate_host)(Device* device, std::uint64_t bytes, void** address);
  void (*release_host)(Device* device, void* address);
  /// Free and total bytes.
  Status (*memory)(Device* device, std::uint64_t* left, std::uint64_t* total);
  /// Ordered with the launches. upload() blocks unless `host` is page-locked and `uploaded`,
  /// recorded after the copy, is given; download() blocks.
  Status (*upload)(Device*, const void* host, void* address, std::uint64_t bytes, Event* uploaded);
  Status (*download)(Device* device, const void* address, void* host, std::uint64_t bytes);
  Status (*copy)(Device* device, const void* from, void* to, std::uint64_t bytes);

  Status (*prepare)(Device*, const char* row, const Node*, Launch**, std::uint64_t* workspace);
  /// Enqueues a launch; `inputs` and `outputs` have one address per input and output of the node.
  Status (*run)(Launch* launch, const void* const* inputs, void* const* outputs, void* workspace);
  void (*discard)(Launch* launch);
  /// The algorithm, tile, split and workspace of a library's launch and the ops in its epilogue, ""
  /// for own kernels; valid as long as the launch. `tensor_cores`: 1 with them, 0 without, -1 where
  /// the library does not say.
  const char* (*describe)(const Launch* launch, std::int32_t* tensor_cores);

  /// Between the two calls, launches are captured and not run.
  Status (*begin_capture)(Device* device);
  Status (*end_capture)(Device* device, CapturedGraph** captured);
  Status (*launch_graph)(CapturedGraph* captured);
  /// The number of kernel launches, copies and fills that were captured.
  std::uint64_t (*graph_nodes)(const CapturedGraph* captured);
  void (*forget)(CapturedGraph* captured);
  Status (*make_event)(Device* device, Event** event);
  /// Enqueues it, or captures it: each launch of the graph records it anew.
  Status (*record)(Event* event);
  /// Blocks until the last record() that was not captured has completed.
  Status (*wait)(Event* event);
  /// Device time from `begin` to `end`, once all enqueued work has completed.
  Status (*elapsed)(const Event* begin, const Event* end, double* seconds);
  void (*destroy_event)(Event* event);
};

/// The type of the exported function.
using Entry = const Table* (*)();

}  // extern "C"

constexpr const char* k_entry = "halfstep_cuda_boundary";

}  // namespace halfstep::backend::cuda::boundary

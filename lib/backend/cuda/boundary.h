#pragma once
// The C boundary between the program and its CUDA plugin. The plugin exports one function, which
// gives a table of calls. Only plain data crosses it and no exception does: a call that fails
// returns a status, and last_error() says why.

#include <cstddef>
#include <cstdint>

namespace halfstep::backend::cuda::boundary {

extern "C" {

/// Raised with every change of what follows; a plugin of another number is refused.
constexpr std::uint32_t k_abi = 2;

constexpr std::size_t k_most_extents = 8;
/// Bytes; of allocations, tensors and workspaces, as the vendor's libraries want them.
constexpr std::size_t k_alignment = 256;

enum class Status : std::int32_t {
  ok = 0,
  unavailable = 1,  ///< no driver, no device, a device too old
  memory = 2,       ///< the device has not enough of it
  unsupported = 3,  ///< no row of that name, or the row cannot run this node
  failed = 4,       ///< an error of the driver or a library; the device is of no more use
};

/// dtype (the number of a halfstep::DType) and extents of a dense row-major tensor.
struct Type {
  std::int32_t dtype;
  std::int32_t rank;
  std::int64_t dims[k_most_extents];
};

/// Integers that are known before the step; `values` is null where they are not.
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

/// A node of the graph as its kernel must know it. All pointers are good for the call alone.
struct Node {
  const char* op;
  const char* name;
  std::int32_t inputs, outputs, attrs;
  const Type* input_types;
  const Integers* constants;  ///< per input
  const Type* output_types;
  const Attr* attr_list;  ///< sorted by name
};

/// "13.0"; empty for what is not there. `driver` is the newest CUDA version that it can run.
struct Versions {
  char driver[32];
  char runtime[32];
  char cublas[32];
  char cudnn[32];
};

struct DeviceFacts {
  char name[256];
  std::int32_t compute_capability;  ///< 90 for sm_90
  std::int32_t multiprocessors;
  std::uint64_t memory_bytes;
};

/// How a device is to compute.
struct Options {
  std::int32_t device;         ///< index among those the driver shows
  std::int32_t tf32;           ///< whether float32 products may round their operands
  std::int32_t deterministic;  ///< whether equal runs must give equal bits
  std::int32_t measure;        ///< whether to time the candidates of a product or convolution
  const char* tuning_folder;   ///< where what was measured is kept; empty keeps nothing
  std::uint64_t memory_limit;  ///< bytes it may allocate; 0 for all there are
};

struct Device;     ///< an opened device with its stream and libraries
struct Launch;     ///< a prepared kernel
struct Recording;  ///< captured launches that run again as one

/// The calls of a plugin. Addresses of tensors and workspaces are the device's.
struct Table {
  std::uint32_t abi;
  const char* flavour;  ///< "cuda", or "emulated": host memory in place of a device

  /// Why the last failing call of this thread failed.
  const char* (*last_error)();
  /// Versions and the number of devices; `unavailable` where nothing can run, with the versions of
  /// what there is.
  Status (*probe)(Versions* versions, std::int32_t* devices);
  /// The version of NCCL, "" where the loader finds none; `capacity` bytes at most. It is loaded
  /// for that, so ask only where somebody wants to know.
  void (*nccl)(char* version, std::uint64_t capacity);
  Status (*facts)(std::int32_t device, DeviceFacts* facts);
  /// The names of the rows it can prepare; null past the last.
  const char* (*row)(std::int32_t index);

  Status (*open)(const Options* options, Device** device);
  void (*close)(Device* device);
  /// Waits for all that was enqueued.
  Status (*synchronize)(Device* device);

  /// Zero-filled, aligned to k_alignment.
  Status (*allocate)(Device* device, std::uint64_t bytes, void** address);
  void (*release)(Device* device, void* address);
  /// Free and total bytes.
  Status (*memory)(Device* device, std::uint64_t* left, std::uint64_t* total);
  /// In the order of the launches; download() waits until the bytes are there.
  Status (*upload)(Device* device, const void* host, void* address, std::uint64_t bytes);
  Status (*download)(Device* device, const void* address, void* host, std::uint64_t bytes);
  Status (*copy)(Device* device, const void* from, void* to, std::uint64_t bytes);

  Status (*prepare)(Device* device,
                    const char* row,
                    const Node* node,
                    Launch** launch,
                    std::uint64_t* workspace_bytes);
  /// Enqueues; inputs and outputs as many as the node has.
  Status (*run)(Launch* launch, const void* const* inputs, void* const* outputs, void* workspace);
  void (*discard)(Launch* launch);

  /// Between the two, launches are written down instead of run.
  Status (*begin_recording)(Device* device);
  Status (*end_recording)(Device* device, Recording** recording);
  Status (*replay)(Recording* recording);
  void (*forget)(Recording* recording);
};

/// The type of the exported function, and its name.
using Entry = const Table* (*)();

}  // extern "C"

constexpr const char* k_entry = "halfstep_cuda_boundary";

}  // namespace halfstep::backend::cuda::boundary

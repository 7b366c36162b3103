#pragma once
// The interface of a GPU vendor's libraries: memory, one stream, captured graphs, matmuls and
// convolutions. There are two implementations: real/ (CUDA runtime, cuBLASLt, cuDNN) and emulated/
// (host memory, the same arguments). A plugin links one of them.
//
// All calls except allocations and queries are enqueued on the stream and run asynchronously, in
// order. Pointers called `device` are device addresses; host code must not dereference them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/cuda/plugin.h"
#include "backend/cuda/vendor/operations.h"
#include "comm/communicator.h"

namespace halfstep::backend::cuda {

/// A stream in the kernels' type: cudaStream_t, or the emulation's queue.
using Stream = void*;

/// Alignment of allocate(); a plan should align matrices, biases and workspaces to it.
inline constexpr std::size_t k_alignment = 256;

enum class Failure : std::uint8_t {
  unavailable,    ///< no driver, no device, or one that is too old
  out_of_memory,  ///< out of device memory; the device stays usable
  ranks,          ///< another rank of the run, or the network to it
  failed,         ///< anything else; the device is unusable from here on
};

/// A failed call into a library; what() names the call and the library's message.
class VendorError : public std::runtime_error {
 public:
  VendorError(Failure failure, const std::string& text)
      : std::runtime_error(text), failure_(failure) {}
  Failure failure() const { return failure_; }

 private:
  Failure failure_;
};

const char* vendor_name();  ///< "cuda", or "emulated"
/// Queries that open no device and never throw.
DeviceProbe probe();

/// A new id under which ranks join (ncclUniqueId). Errors: VendorError.
using RankId = std::array<char, 128>;
RankId new_rank_id();

enum class Autotune : std::uint8_t {
  heuristic,  ///< the libraries' first choice
  measure,    ///< the fastest of the candidates, timed on this device
};

struct VendorOptions {
  int device = 0;
  Autotune autotune = Autotune::heuristic;
  std::string cache_folder;      ///< where measured choices are kept; "": nowhere
  std::size_t memory_limit = 0;  ///< limit on allocated bytes; 0: all device memory
};

/// An event of the stream.
class StreamEvent : public Event {
 public:
  /// Blocks until the stream has passed the last record() that was not captured.
  virtual void wait() = 0;
};

/// An opened device. Used by one thread at a time.
class Vendor {
 public:
  struct Memory {
    std::size_t free = 0;
    std::size_t total = 0;
  };

  virtual ~Vendor() = default;
  /// Makes it the device of the calling thread; needed in each thread that uses it.
  virtual void enter() = 0;
  virtual const GpuInfo& device() const = 0;
  virtual Stream stream() = 0;

  // allocate() returns nullptr when memory does not suffice, and for 0 bytes.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release(void* device) = 0;
  virtual Memory memory() const = 0;
  /// Pinned host memory: copies run at full speed and asynchronously.
  virtual void* allocate_host(std::size_t bytes) = 0;
  virtual void release_host(void* host) = 0;
  /// Enqueue copies. Host memory must remain valid and unchanged until the stream has passed them.
  virtual void upload(void* device, const void* host, std::size_t bytes) = 0;
  virtual void download(void* host, const void* device, std::size_t bytes) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes) = 0;
  virtual void fill(void* device, std::uint8_t byte, std::size_t bytes) = 0;

  virtual void synchronize() = 0;
  /// Whether the stream is idle; does not block. Errors: VendorError, also of sums over ranks.
  virtual bool idle() = 0;
  virtual std::unique_ptr<StreamEvent> event() = 0;
  /// From here on calls are captured and not run; allocation, release and synchronize() are errors.
  virtual void begin_capture() = 0;
  virtual std::unique_ptr<CapturedGraph> end_capture() = 0;

  /// Joins the ranks of a run, which all call it, each with a device of its own. Blocking.
  virtual void join(const RankId& id, int rank, int ranks) = 0;
  /// Enqueues the sum over the ranks of `count` numbers of float32, float16 or bfloat16, in place,
  /// or a half of it. It runs after all that was enqueued before and beside all that follows, until
  /// wait_for_sum(). All ranks start the same sums in the same order.
  virtual void start_sum(void* numbers,
                         std::int64_t count,
                         DType dtype,
                         comm::CollectiveKind kind) = 0;
  /// Lets the stream wait for the sum that was started last in `numbers`; does not block.
  virtual void wait_for_sum(const void* numbers) = 0;
  /// Ends all sums without their results, because a rank is lost. No sum may follow, and no
  /// captured graph may be left: NCCL waits until the last one with its sums is destroyed.
  virtual void abandon_sums() = 0;

  // Library functions. Null when the library does not support the key (an epilogue, a dtype).
  virtual std::unique_ptr<Matmul> matmul(const MatmulKey& key) = 0;
  virtual std::unique_ptr<Convolution> convolution(const ConvKey& key) = 0;
};

/// Opens a device. Errors: VendorError.
std::unique_ptr<Vendor> open_vendor(const VendorOptions& options);

}  // namespace halfstep::backend::cuda

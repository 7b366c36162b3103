#pragma once
// The next batch is put together on a thread of its own while the current one is trained on.

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "data/loader.h"

namespace halfstep::data {

/// A batch with its rows. The tensors have room for a full batch; rows from batch.size() on are
/// left over from earlier batches.
struct LoadedBatch {
  Batch batch;
  Tensor images;
  Tensor labels;
};

struct PrefetchOptions {
  std::int64_t first = 0;  ///< ordinal to begin with
  std::int64_t end =
      std::numeric_limits<std::int64_t>::max();  ///< nothing is prepared from here on
  /// Batches prepared beyond the one in use, on a thread of their own; they cost their memory. 0:
  /// each is prepared when it is asked for, without a thread.
  int ahead = 1;
  DType image_dtype = DType::uint8;  ///< the data's own, or float32 (scaled)
};

/// Prepares batches in the order of their ordinals.
class Prefetcher {
 public:
  /// Makes batch `ordinal` in a slot whose tensors are reused. Runs on the prefetch thread if there
  /// is one.
  using Produce = std::function<void(std::int64_t ordinal, LoadedBatch& slot)>;

  Prefetcher(Loader loader, const PrefetchOptions& options);
  Prefetcher(Produce produce, const PrefetchOptions& options);
  /// Waits for the batch being prepared and ends the thread.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Batch `ordinal`, valid until the next call. Asking for the same ordinal again gives the same
  /// batch; any other ordinal than the next one starts over from there.
  /// Errors: rethrows what went wrong while preparing; InternalError for an ordinal outside
  /// [0, end). One thread only.
  const LoadedBatch& take(std::int64_t ordinal);

 private:
  enum class State { free, filling, ready, held };
  struct Slot {
    State state = State::free;
    std::int64_t ordinal = -1;
    LoadedBatch loaded;
  };

  void work();
  /// take() without a thread.
  const LoadedBatch& make(std::int64_t ordinal);
  Slot* find(State state, std::int64_t ordinal);
  /// Drops everything prepared and goes on from `ordinal`.
  void seek(std::int64_t ordinal);

  Produce produce_;
  std::int64_t end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::int64_t next_;            ///< ordinal to prepare next
  std::int64_t generation_ = 0;  ///< raised by seek, so that a batch under way is dropped
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;  ///< last: starts when all else is there
};

}  // namespace halfstep::data

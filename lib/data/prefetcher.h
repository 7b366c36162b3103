#pragma once
// Prefetching: a thread assembles the next batches during the training step.

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

/// A batch with its samples. The tensors have the capacity of a full batch; rows from batch.size()
/// on are stale values of earlier batches.
struct LoadedBatch {
  Batch batch;
  Tensor images;
  Tensor labels;
  Tensor weights;  ///< rank 0 where the samples have none
};

struct PrefetchOptions {
  std::int64_t first = 0;                                       ///< ordinal to begin with
  std::int64_t end = std::numeric_limits<std::int64_t>::max();  ///< end of the range to prepare
  /// Batches prepared beyond the one in use, by a thread; each costs its memory. 0: each batch is
  /// prepared in take(), without a thread.
  int ahead = 1;
  DType image_dtype = DType::uint8;  ///< dtype of the images: as stored, or float32 (scaled)
};

/// Prepares batches in the order of their ordinals.
class Prefetcher {
 public:
  /// Fills `slot`, whose tensors are reused, with batch `ordinal`. Runs on the prefetch thread if
  /// there is one.
  using Produce = std::function<void(std::int64_t ordinal, LoadedBatch& slot)>;

  Prefetcher(Loader loader, const PrefetchOptions& options);
  Prefetcher(Produce produce, const PrefetchOptions& options);
  /// Waits for the batch in preparation and joins the thread.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Batch `ordinal`, valid until the next call. The same ordinal again returns the same batch; any
  /// ordinal other than the next restarts the prefetching there. Blocks until the batch is ready.
  /// To be called from one thread only. Errors: rethrows the error of the preparation;
  /// InternalError for an ordinal outside [0, end).
  const LoadedBatch& take(std::int64_t ordinal);

 private:
  enum class State { free, filling, ready, held };
  struct Slot {
    State state = State::free;
    std::int64_t ordinal = -1;
    LoadedBatch loaded;
  };

  void work();
  /// take() without a prefetch thread.
  const LoadedBatch& make(std::int64_t ordinal);
  Slot* find(State state, std::int64_t ordinal);
  /// Drops all prepared batches and continues from `ordinal`.
  void seek(std::int64_t ordinal);

  Produce produce_;
  std::int64_t end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;
  std::int64_t next_;            ///< ordinal to prepare next
  std::int64_t generation_ = 0;  ///< incremented by seek, so that a batch in preparation is dropped
  bool stop_ = false;
  std::exception_ptr error_;
  std::jthread thread_;  ///< last: starts after all other members, and ends before them
};

}  // namespace halfstep::data

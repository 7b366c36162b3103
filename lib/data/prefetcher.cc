#include "data/prefetcher.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/thread_pool.h"

namespace halfstep::data {
namespace {

/// Allocates the slot's tensors with the rows of a full batch.
void reserve(LoadedBatch& slot, const Loader& loader, DType image_dtype) {
  const SplitView& data = loader.data();
  if (slot.images.shape() == data.images.shape.with(0, loader.batch_rows())) return;
  slot.images = Tensor(image_dtype, data.images.shape.with(0, loader.batch_rows()));
  slot.labels = Tensor(data.labels.dtype, data.labels.shape.with(0, loader.batch_rows()));
  if (data.weighted()) slot.weights = Tensor(DType::float32, {loader.batch_rows()});
}

Prefetcher::Produce produce_from(Loader loader, DType image_dtype) {
  return
      [loader = std::move(loader), image_dtype](std::int64_t ordinal, LoadedBatch& slot) mutable {
        reserve(slot, loader, image_dtype);
        loader.batch_at(ordinal, slot.batch);
        // Not parallel: the thread pool runs one team at a time, and the training step's kernels
        // use it.
        loader.fill(slot.batch, slot.images.view(), slot.labels.view(), false);
        if (loader.data().weighted()) loader.fill_weights(slot.batch, slot.weights.view());
      };
}

}  // namespace

Prefetcher::Prefetcher(Loader loader, const PrefetchOptions& options)
    : Prefetcher(produce_from(std::move(loader), options.image_dtype), options) {}

Prefetcher::Prefetcher(Produce produce, const PrefetchOptions& options)
    : produce_(std::move(produce)),
      end_(options.end),
      slots_(static_cast<std::size_t>(options.ahead) + 1),
      next_(options.first) {
  if (options.ahead > 0) thread_ = start_thread([this] { work(); });
}

Prefetcher::~Prefetcher() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
}

Prefetcher::Slot* Prefetcher::find(State state, std::int64_t ordinal) {
  for (Slot& slot : slots_) {
    if (slot.state == state && (state == State::free || slot.ordinal == ordinal)) return &slot;
  }
  return nullptr;
}

void Prefetcher::seek(std::int64_t ordinal) {
  for (Slot& slot : slots_) {
    if (slot.state == State::ready) slot.state = State::free;
  }
  ++generation_;
  next_ = ordinal;
  error_ = nullptr;
}

const LoadedBatch& Prefetcher::make(std::int64_t ordinal) {
  Slot& slot = slots_.front();
  if (slot.state == State::held && slot.ordinal == ordinal) return slot.loaded;
  slot.state = State::free;
  slot.ordinal = ordinal;
  produce_(ordinal, slot.loaded);
  slot.state = State::held;
  return slot.loaded;
}

const LoadedBatch& Prefetcher::take(std::int64_t ordinal) {
  require(ordinal >= 0 && ordinal < end_, "batch {} of {}", ordinal, end_);
  if (!thread_.joinable()) return make(ordinal);
  std::unique_lock lock(mutex_);
  if (const Slot* held = find(State::held, ordinal)) return held->loaded;
  for (Slot& slot : slots_) {
    if (slot.state == State::held) slot.state = State::free;
  }
  // Slots that are ready or in preparation hold the ordinals [next_ - k, next_), in order.
  const auto expected = [&] {
    std::int64_t first = next_;
    for (const Slot& slot : slots_) {
      if (slot.state == State::ready || slot.state == State::filling) {
        first = std::min(first, slot.ordinal);
      }
    }
    return first;
  };
  if (expected() != ordinal) seek(ordinal);
  changed_.notify_all();
  Slot* ready = nullptr;
  changed_.wait(lock, [&] {
    ready = find(State::ready, ordinal);
    return ready != nullptr || (error_ && next_ == ordinal);
  });
  if (ready == nullptr) std::rethrow_exception(error_);
  ready->state = State::held;
  return ready->loaded;
}

void Prefetcher::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    Slot* slot = nullptr;
    changed_.wait(lock, [&] {
      slot = next_ < end_ && !error_ ? find(State::free, 0) : nullptr;
      return stop_ || slot != nullptr;
    });
    if (stop_) return;
    slot->state = State::filling;
    slot->ordinal = next_++;
    const std::int64_t generation = generation_;
    const std::int64_t ordinal = slot->ordinal;
    std::exception_ptr error;
    lock.unlock();
    try {
      produce_(ordinal, slot->loaded);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (generation != generation_) {
      slot->state = State::free;
    } else if (error) {
      slot->state = State::free;
      next_ = ordinal;
      error_ = error;
    } else {
      slot->state = State::ready;
    }
    changed_.notify_all();
  }
}

}  // namespace halfstep::data

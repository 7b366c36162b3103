#pragma once
// The source of a trainer's batches: the host, either prefetched or assembled by the thread pool,
// or the memory of a device that holds the whole data set.

#include <memory>

#include "backend/backend.h"
#include "data/loader.h"
#include "data/prefetcher.h"
#include "plan/plan.h"

namespace halfstep::train {

class DeviceBatches;

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Batch `ordinal`, valid until the next call; the same ordinal may be requested again.
  virtual const data::Batch& take(std::int64_t ordinal) = 0;
  /// Writes images, labels and ordinal of the last batch taken to a plan of its size.
  virtual void fill(plan::Plan& plan) = 0;
  /// The batches of a device that holds the whole data set; nullptr for others.
  virtual DeviceBatches* resident() { return nullptr; }
};

/// Batches of `rows` in the order of `batches`: from the device's memory if the samples fit into it
/// next to everything already allocated, else from the host as `prefetch` says.
std::unique_ptr<BatchSource> make_batch_source(const backend::Backend& backend,
                                               const data::SplitView& rows,
                                               const data::BatchOptions& batches,
                                               const data::PrefetchOptions& prefetch);

}  // namespace halfstep::train

#pragma once
// Where a trainer's batches come from: the host, prepared ahead of the steps or by their threads,
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
  /// Batch `ordinal`, valid until the next call; the same one may be asked for again.
  virtual const data::Batch& take(std::int64_t ordinal) = 0;
  /// Writes images, labels and ordinal of the batch that was taken last to a plan of its size.
  virtual void fill(plan::Plan& plan) = 0;
  /// The batches of a device that holds the whole data set; nullptr for others.
  virtual DeviceBatches* resident() { return nullptr; }
};

/// Batches of `rows` in the order of `batches`, from the device where its memory holds the rows
/// beside all that is there already, else from the host as `prefetch` says.
std::unique_ptr<BatchSource> make_batch_source(const backend::Backend& backend,
                                               const data::SplitView& rows,
                                               const data::BatchOptions& batches,
                                               const data::PrefetchOptions& prefetch);

}  // namespace halfstep::train

#pragma once
// The batches of a run on the host: prefetched by a thread, or assembled by the thread pool in the
// plan's inputs.

#include <memory>

#include "config/run_spec.h"
#include "data/loader.h"
#include "data/prefetcher.h"
#include "plan/plan.h"

namespace halfstep::train {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Writes images, labels and ordinal of batch `ordinal` to a plan of its size. Any ordinal, in
  /// any order; the next one and the same one again are the fast cases. After the first batch of an
  /// epoch it allocates nothing.
  virtual void fill(std::int64_t ordinal, plan::Plan& plan) = 0;
};

/// The batch order of the config.
data::BatchOptions batch_options(const config::RunSpec& spec);

/// Batches of `rows` in host memory. `in_place`: without a prefetch thread, directly in the plan's
/// inputs, which must be in host memory.
std::unique_ptr<BatchSource> host_batches(const data::SplitView& rows,
                                          const data::BatchOptions& batches,
                                          const data::PrefetchOptions& prefetch,
                                          bool in_place);

}  // namespace halfstep::train

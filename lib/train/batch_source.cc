#include "train/batch_source.h"

#include "train/device_batches.h"

namespace halfstep::train {
namespace {

class HostBatches final : public BatchSource {
 public:
  HostBatches(const data::SplitView& rows,
              const data::BatchOptions& batches,
              const data::PrefetchOptions& prefetch)
      : prefetcher_(data::Loader(rows, batches), prefetch) {}

  const data::Batch& take(std::int64_t ordinal) override {
    loaded_ = &prefetcher_.take(ordinal);
    return loaded_->batch;
  }

  void fill(plan::Plan& plan) override {
    plan.write("images", loaded_->images.view().data);
    plan.write("labels", loaded_->labels.view().data);
    plan.write("ordinal", &loaded_->batch.ordinal);
  }

 private:
  data::Prefetcher prefetcher_;
  const data::LoadedBatch* loaded_ = nullptr;
};

/// Batches assembled by the thread pool directly in the plan's input slots.
class BatchesInPlace final : public BatchSource {
 public:
  BatchesInPlace(const data::SplitView& rows, const data::BatchOptions& batches)
      : loader_(rows, batches) {}

  const data::Batch& take(std::int64_t ordinal) override {
    if (batch_.samples.empty() || batch_.ordinal != ordinal) batch_ = loader_.batch_at(ordinal);
    return batch_;
  }

  void fill(plan::Plan& plan) override {
    loader_.fill(batch_, plan.input("images"), plan.input("labels"), true);
    plan.write("ordinal", &batch_.ordinal);
  }

 private:
  data::Loader loader_;
  data::Batch batch_;
};

}  // namespace

std::unique_ptr<BatchSource> make_batch_source(const backend::Backend& backend,
                                               const data::SplitView& rows,
                                               const data::BatchOptions& batches,
                                               const data::PrefetchOptions& prefetch) {
  if (backend.device && DeviceBatches::bytes(rows, batches) <= backend.memory->left()) {
    return std::make_unique<DeviceBatches>(backend, rows, batches);
  }
  if (!backend.device && prefetch.ahead == 0) {
    return std::make_unique<BatchesInPlace>(rows, batches);
  }
  return std::make_unique<HostBatches>(rows, batches, prefetch);
}

}  // namespace halfstep::train

#include "train/batch_source.h"

namespace halfstep::train {
namespace {

class HostBatches final : public BatchSource {
 public:
  HostBatches(const data::SplitView& rows,
              const data::BatchOptions& batches,
              const data::PrefetchOptions& prefetch)
      : prefetcher_(data::Loader(rows, batches), prefetch) {}

  void fill(std::int64_t ordinal, plan::Plan& plan) override {
    const data::LoadedBatch& loaded = prefetcher_.take(ordinal);
    plan.write("images", loaded.images.view().data);
    plan.write("labels", loaded.labels.view().data);
    if (plan.has_input("sample_weights")) {
      plan.write("sample_weights", loaded.weights.view().data);
    }
    plan.write("ordinal", &loaded.batch.ordinal);
  }

 private:
  data::Prefetcher prefetcher_;
};

/// Batches assembled by the thread pool directly in the plan's input slots.
class BatchesInPlace final : public BatchSource {
 public:
  BatchesInPlace(const data::SplitView& rows, const data::BatchOptions& batches)
      : loader_(rows, batches) {}

  void fill(std::int64_t ordinal, plan::Plan& plan) override {
    if (batch_.samples.empty() || batch_.ordinal != ordinal) loader_.batch_at(ordinal, batch_);
    loader_.fill(batch_, plan.input("images"), plan.input("labels"), true);
    if (plan.has_input("sample_weights")) {
      loader_.fill_weights(batch_, plan.input("sample_weights"));
    }
    plan.write("ordinal", &batch_.ordinal);
  }

 private:
  data::Loader loader_;
  data::Batch batch_;
};

}  // namespace

data::BatchOptions batch_options(const config::RunSpec& spec) {
  return {.batch_size = spec.training.batch_size,
          .seed = static_cast<std::uint64_t>(spec.seed),
          .shuffle = spec.data.shuffle,
          .streams = spec.data.streams,
          .partners = spec.data.augment.mixup.has_value()};
}

std::unique_ptr<BatchSource> host_batches(const data::SplitView& rows,
                                          const data::BatchOptions& batches,
                                          const data::PrefetchOptions& prefetch,
                                          bool in_place) {
  if (in_place) return std::make_unique<BatchesInPlace>(rows, batches);
  return std::make_unique<HostBatches>(rows, batches, prefetch);
}

}  // namespace halfstep::train

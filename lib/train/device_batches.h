#pragma once
// A data set in the memory of a device, which gathers the batches by itself.

#include <map>
#include <optional>
#include <thread>

#include "train/batch_source.h"
#include "train/device_op.h"

namespace halfstep::train {

/// All samples of one tensor.
class DeviceSamples {
 public:
  DeviceSamples(const backend::Backend& backend, const TensorView& host);

  /// to[i] = rows[order[at + i]], where `at` is that of batch `ordinal` among `steps` of to's size.
  void gather(const TensorView& order,
              const TensorView& ordinal,
              std::int64_t steps,
              const TensorView& to);

  const TensorView& all() const { return rows_; }

 private:
  const backend::Backend& backend_;
  backend::Buffer buffer_;
  TensorView rows_;
  std::map<std::pair<std::int64_t, std::int64_t>, DeviceOp> gathers_;  ///< by batch size and steps
};

class DeviceBatches final : public BatchSource {
 public:
  /// Uploads all samples; blocking. Errors: UserError(memory).
  DeviceBatches(const backend::Backend& backend,
                const data::SplitView& rows,
                const data::BatchOptions& batches);

  /// The device memory it needs.
  static std::size_t bytes(const data::SplitView& rows, const data::BatchOptions& batches);

  /// Only enqueues, but waits for the shuffle of an epoch that it enters.
  void fill(std::int64_t ordinal, plan::Plan& plan) override;

  /// Lets a thread shuffle the epoch after the present one, while the device works.
  void prepare_next_epoch();

  /// Sets the ordinal of `plan` to the one before `ordinal`, so that the next advance() gives batch
  /// `ordinal`. Within an epoch it only enqueues.
  void aim(std::int64_t ordinal, plan::Plan& plan);
  /// Enqueues one launch: increments the ordinal of `plan`, and gathers the samples of
  /// that batch, which must be a full one of the epoch of the last aim(). It is the same for each
  /// batch, so that it can be captured. True when it has scaled the images, too
  /// (plan::Plan::scaled), instead of writing the plan's input.
  bool advance(plan::Plan& plan);

 private:
  /// The op of advance(), for full batches of `images` and a scale.
  DeviceOp next_op(DType images, double scale) const;
  /// Starts to write to staging_ the permutation of an epoch, and behind it the ordinals of its
  /// batches and of the one before. Blocks while those of the previous epoch are uploaded.
  void stage(std::int64_t epoch);
  /// Enqueues their upload for the epoch of batch `ordinal` unless they are on the device; returns
  /// the batch's index in the epoch.
  std::int64_t enter_epoch(std::int64_t ordinal);
  /// Enqueues: sets the ordinal of `plan` to entry `index` of the epoch's.
  void set_ordinal(std::int64_t index, plan::Plan& plan);
  TensorView epoch_order() const;

  const backend::Backend& backend_;
  data::BatchOrder order_;
  DeviceSamples images_, labels_;
  std::optional<DeviceSamples> weights_;  ///< of the samples, where they have weights
  std::size_t ordinals_at_;  ///< offset of the ordinals in the next two, behind the permutation
  backend::Buffer on_device_;
  std::unique_ptr<backend::Staging> staging_;
  std::int64_t epoch_ = -1, staged_ = -1;  ///< the epochs in on_device_ and in staging_
  data::Batch batch_;                      ///< kept for its memory
  std::optional<DeviceOp> next_;           ///< made at the first advance()
  std::jthread shuffling_;                 ///< writes to staging_, order_ and batch_
};

}  // namespace halfstep::train

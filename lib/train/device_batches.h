#pragma once
// A data set in the memory of a device, which gathers the batches by itself.

#include <map>

#include "train/batch_source.h"
#include "train/device_op.h"

namespace halfstep::train {

/// All samples of one tensor.
class DeviceRows {
 public:
  DeviceRows(const backend::Backend& backend, const TensorView& host);

  /// to[i] = rows[order[at + i]], where `at` is that of batch `ordinal` among `steps` of to's size.
  void gather(const TensorView& order,
              const TensorView& ordinal,
              std::int64_t steps,
              const TensorView& to);

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

  const data::Batch& take(std::int64_t ordinal) override;
  /// Within an epoch it only enqueues, without blocking.
  void fill(plan::Plan& plan) override;
  DeviceBatches* resident() override { return this; }

  /// Enqueues: sets the ordinal of `plan` to the one before the last batch taken.
  void aim(plan::Plan& plan);
  /// Enqueues: increments the ordinal of `plan`, and gathers the images and labels of that batch, a
  /// full one of the epoch of the last batch taken. The launches are the same for each batch, so
  /// they can be captured.
  void advance(plan::Plan& plan);

 private:
  /// Uploads the permutation and the ordinals of an epoch.
  void upload_epoch(std::int64_t epoch);
  TensorView epoch_order() const;

  const backend::Backend& backend_;
  data::BatchOrder order_;
  DeviceRows images_, labels_;
  backend::Buffer epoch_order_;
  backend::Buffer epoch_ordinals_;  ///< from the ordinal before the epoch's first on
  backend::Buffer one_;
  DeviceOp raise_;
  std::int64_t epoch_ = -1;  ///< the epoch whose order and ordinals are on the device
  data::Batch batch_;
};

}  // namespace halfstep::train

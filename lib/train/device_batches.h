#pragma once
// A data set in the memory of a device, which gathers the batches itself.

#include <map>

#include "train/batch_source.h"
#include "train/device_op.h"

namespace halfstep::train {

/// All rows of one tensor.
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
  DeviceBatches(const backend::Backend& backend,
                const data::SplitView& rows,
                const data::BatchOptions& batches);

  /// What it takes of the device's memory.
  static std::size_t bytes(const data::SplitView& rows, const data::BatchOptions& batches);

  const data::Batch& take(std::int64_t ordinal) override;
  /// Only enqueues within an epoch.
  void fill(plan::Plan& plan) override;
  DeviceBatches* resident() override { return this; }

  /// Enqueues: the ordinal of `plan` becomes the one before that of the batch taken last.
  void aim(plan::Plan& plan);
  /// Enqueues: the ordinal of `plan` rises by one, and images and labels become those of that
  /// batch, a full one of the epoch of the batch taken last. The same launches for each batch.
  void advance(plan::Plan& plan);

 private:
  void upload_epoch(std::int64_t epoch);
  TensorView epoch_order() const;

  const backend::Backend& backend_;
  data::BatchOrder order_;
  DeviceRows images_, labels_;
  backend::Buffer epoch_order_;
  backend::Buffer epoch_ordinals_;  ///< from the one before the epoch's first on
  backend::Buffer one_;
  DeviceOp raise_;
  std::int64_t epoch_ = -1;  ///< whose order and ordinals are on the device
  data::Batch batch_;
};

}  // namespace halfstep::train

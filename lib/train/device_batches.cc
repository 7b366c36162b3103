#include "train/device_batches.h"

#include <array>

#include "core/error.h"

namespace halfstep::train {
namespace {

std::size_t order_bytes(const data::SplitView& rows) {
  return static_cast<std::size_t>(rows.samples()) * sizeof(std::int32_t);
}

std::size_t ordinal_bytes(const data::SplitView& rows, const data::BatchOptions& batches) {
  const data::BatchOrder order(rows.samples(), batches);
  return static_cast<std::size_t>(order.steps_per_epoch() + 1) * sizeof(std::int64_t);
}

}  // namespace

DeviceRows::DeviceRows(const backend::Backend& backend, const TensorView& host)
    : backend_(backend), buffer_(backend.memory, host.bytes()), rows_(host) {
  backend.memory->upload(host.data, buffer_.data(), host.bytes());
  rows_.data = buffer_.data();
}

void DeviceRows::gather(const TensorView& order,
                        const TensorView& ordinal,
                        std::int64_t steps,
                        const TensorView& to) {
  const std::int64_t batch = to.shape[0];
  auto found = gathers_.find({batch, steps});
  if (found == gathers_.end()) {
    DeviceOp gather(backend_,
                    "GatherBatch",
                    {{rows_.dtype, rows_.shape}, {DType::int32, order.shape}, {DType::int64, {}}},
                    {{"T", rows_.dtype}, {"batch", batch}, {"steps", steps}});
    found = gathers_.emplace(std::pair(batch, steps), std::move(gather)).first;
  }
  const std::array in{rows_, order, ordinal};
  found->second.run(in, {&to, 1});
}

DeviceBatches::DeviceBatches(const backend::Backend& backend,
                             const data::SplitView& rows,
                             const data::BatchOptions& batches)
    : backend_(backend),
      order_(rows.samples(), batches),
      images_(backend, rows.images),
      labels_(backend, rows.labels),
      epoch_order_(backend.memory, order_bytes(rows)),
      epoch_ordinals_(backend.memory, ordinal_bytes(rows, batches)),
      one_(backend.memory, sizeof(std::int64_t)),
      raise_(backend,
             "AssignAddVariableOp",
             {{DType::int64, {}, true}, {DType::int64, {}}},
             {{"dtype", DType::int64}}) {
  const std::int64_t one = 1;
  backend.memory->upload(&one, one_.data(), sizeof one);
}

std::size_t DeviceBatches::bytes(const data::SplitView& rows, const data::BatchOptions& batches) {
  return rows.images.bytes() + rows.labels.bytes() + order_bytes(rows) +
         ordinal_bytes(rows, batches) + sizeof(std::int64_t);
}

const data::Batch& DeviceBatches::take(std::int64_t ordinal) {
  batch_ = order_.batch_at(ordinal);
  if (batch_.epoch != epoch_) upload_epoch(batch_.epoch);
  return batch_;
}

TensorView DeviceBatches::epoch_order() const {
  return {DType::int32,
          {static_cast<std::int64_t>(epoch_order_.bytes() / sizeof(std::int32_t))},
          epoch_order_.data()};
}

void DeviceBatches::fill(plan::Plan& plan) {
  const std::int64_t first = batch_.index * order_.options().batch_size;
  const TensorView order{
      DType::int32,
      {batch_.size()},
      epoch_order_.data() + static_cast<std::size_t>(first) * sizeof(std::int32_t)};
  const TensorView ordinal = plan.input("ordinal");
  backend_.memory->copy(
      epoch_ordinals_.data() + static_cast<std::size_t>(batch_.index + 1) * sizeof(std::int64_t),
      ordinal.data,
      ordinal.bytes());
  images_.gather(order, ordinal, 1, plan.input("images"));
  labels_.gather(order, ordinal, 1, plan.input("labels"));
}

void DeviceBatches::aim(plan::Plan& plan) {
  const TensorView ordinal = plan.input("ordinal");
  backend_.memory->copy(
      epoch_ordinals_.data() + static_cast<std::size_t>(batch_.index) * sizeof(std::int64_t),
      ordinal.data,
      ordinal.bytes());
}

void DeviceBatches::advance(plan::Plan& plan) {
  const TensorView ordinal = plan.input("ordinal");
  const std::array in{ordinal, TensorView{DType::int64, {}, one_.data()}};
  raise_.run(in, {});
  const std::int64_t steps = order_.steps_per_epoch();
  images_.gather(epoch_order(), ordinal, steps, plan.input("images"));
  labels_.gather(epoch_order(), ordinal, steps, plan.input("labels"));
}

void DeviceBatches::upload_epoch(std::int64_t epoch) {
  std::vector<std::int32_t> samples;
  const std::int64_t steps = order_.steps_per_epoch();
  std::vector<std::int64_t> ordinals{epoch * steps - 1};
  for (std::int64_t step = 0; step < steps; ++step) {
    const data::Batch batch = order_.batch_at(epoch * steps + step);
    samples.insert(samples.end(), batch.samples.begin(), batch.samples.end());
    ordinals.push_back(batch.ordinal);
  }
  backend_.memory->upload(
      samples.data(), epoch_order_.data(), samples.size() * sizeof(std::int32_t));
  backend_.memory->upload(
      ordinals.data(), epoch_ordinals_.data(), ordinals.size() * sizeof(std::int64_t));
  epoch_ = epoch;
}

}  // namespace halfstep::train

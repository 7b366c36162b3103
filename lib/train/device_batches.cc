#include "train/device_batches.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.h"
#include "core/thread_pool.h"

namespace halfstep::train {
namespace {

/// Bytes of the permutation of an epoch, up to the ordinals behind it, and of the latter.
std::size_t order_bytes(const data::SplitView& rows, const data::BatchOptions& batches) {
  const auto samples = static_cast<std::size_t>(rows.samples() * batches.rows_per_sample());
  return (samples + samples % 2) * sizeof(std::int32_t);
}
std::size_t ordinal_bytes(const data::SplitView& rows, const data::BatchOptions& batches) {
  const data::BatchOrder order(rows.samples(), batches);
  return static_cast<std::size_t>(order.steps_per_epoch() + 1) * sizeof(std::int64_t);
}

}  // namespace

DeviceSamples::DeviceSamples(const backend::Backend& backend, const TensorView& host)
    : backend_(backend), buffer_(backend.memory, host.bytes()), rows_(host) {
  backend.memory->upload(host.data, buffer_.data(), host.bytes());
  rows_.data = buffer_.data();
}

void DeviceSamples::gather(const TensorView& order,
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
      weights_(rows.weighted() ? std::optional<DeviceSamples>(std::in_place, backend, rows.weights)
                               : std::nullopt),
      ordinals_at_(order_bytes(rows, batches)),
      on_device_(backend.memory, ordinals_at_ + ordinal_bytes(rows, batches)),
      staging_(backend.memory->staging(on_device_.bytes())) {}

std::size_t DeviceBatches::bytes(const data::SplitView& rows, const data::BatchOptions& batches) {
  const std::size_t weights = rows.weighted() ? rows.weights.bytes() : 0;
  return rows.images.bytes() + rows.labels.bytes() + weights + order_bytes(rows, batches) +
         ordinal_bytes(rows, batches);
}

TensorView DeviceBatches::epoch_order() const {
  return {DType::int32, {order_.samples() * order_.options().rows_per_sample()}, on_device_.data()};
}

void DeviceBatches::set_ordinal(std::int64_t index, plan::Plan& plan) {
  const TensorView ordinal = plan.input("ordinal");
  backend_.memory->copy(
      on_device_.data() + ordinals_at_ + static_cast<std::size_t>(index) * sizeof(std::int64_t),
      ordinal.data,
      ordinal.bytes());
}

void DeviceBatches::fill(std::int64_t ordinal, plan::Plan& plan) {
  const std::int64_t index = enter_epoch(ordinal);
  const std::int64_t rows = order_.options().rows_per_sample();
  const std::int64_t first = index * order_.options().batch_size * rows;
  const TensorView order{
      DType::int32,
      {order_.batch_samples(ordinal) * rows},
      on_device_.data() + static_cast<std::size_t>(first) * sizeof(std::int32_t)};
  set_ordinal(index + 1, plan);
  images_.gather(order, plan.input("ordinal"), 1, plan.input("images"));
  labels_.gather(order, plan.input("ordinal"), 1, plan.input("labels"));
  if (weights_) {
    weights_->gather(order, plan.input("ordinal"), 1, plan.input("sample_weights"));
  }
}

void DeviceBatches::aim(std::int64_t ordinal, plan::Plan& plan) {
  set_ordinal(enter_epoch(ordinal), plan);
}

DeviceOp DeviceBatches::next_op(DType batch, double scale) const {
  const TensorView &images = images_.all(), &labels = labels_.all();
  std::vector<DeviceOp::Port> ports{{DType::int64, {}, true},
                                    {DType::int32, epoch_order().shape},
                                    {images.dtype, images.shape},
                                    {labels.dtype, labels.shape}};
  std::vector<DType> stored{images.dtype, labels.dtype}, gathered{batch, labels.dtype};
  std::vector<double> scales{scale, 1};
  if (weights_) {
    ports.push_back({DType::float32, weights_->all().shape});
    stored.push_back(DType::float32);
    gathered.push_back(DType::float32);
    scales.push_back(1);
  }
  return {backend_,
          "NextBatch",
          ports,
          {{"Tin", std::move(stored)},
           {"Tout", std::move(gathered)},
           {"scales", std::move(scales)},
           {"batch", order_.options().batch_size * order_.options().rows_per_sample()},
           {"steps", order_.steps_per_epoch()}}};
}

bool DeviceBatches::advance(plan::Plan& plan) {
  const std::optional<plan::Plan::Scaled> scaled = plan.scaled("images");
  const TensorView images = scaled ? scaled->result : plan.input("images");
  if (!next_) next_.emplace(next_op(images.dtype, scaled ? scaled->scale : 1));
  const std::size_t weighted = weights_ ? 1 : 0;
  const std::array in{plan.input("ordinal"),
                      epoch_order(),
                      images_.all(),
                      labels_.all(),
                      weights_ ? weights_->all() : TensorView{}};
  const std::array out{
      images, plan.input("labels"), weights_ ? plan.input("sample_weights") : TensorView{}};
  next_->run(std::span(in).first(4 + weighted), std::span(out).first(2 + weighted));
  return scaled.has_value();
}

void DeviceBatches::stage(std::int64_t epoch) {
  if (staged_ == epoch) return;
  shuffling_ = {};  // joins
  shuffling_ = start_thread([this, epoch, to = staging_->data()] {
    auto* samples = reinterpret_cast<std::int32_t*>(to);
    auto* ordinals = reinterpret_cast<std::int64_t*>(to + ordinals_at_);
    const std::int64_t steps = order_.steps_per_epoch();
    for (std::int64_t step = 0; step < steps; ++step) {
      order_.batch_at(epoch * steps + step, batch_);
      samples = std::copy(batch_.samples.begin(), batch_.samples.end(), samples);
    }
    std::iota(ordinals, ordinals + steps + 1, epoch * steps - 1);
  });
  staged_ = epoch;
}

void DeviceBatches::prepare_next_epoch() { stage(epoch_ + 1); }

std::int64_t DeviceBatches::enter_epoch(std::int64_t ordinal) {
  const std::int64_t steps = order_.steps_per_epoch();
  const std::int64_t epoch = ordinal / steps;
  if (epoch != epoch_) {
    stage(epoch);
    shuffling_ = {};  // joins
    staging_->upload(on_device_.data(), on_device_.bytes());
    epoch_ = epoch;
  }
  return ordinal % steps;
}

}  // namespace halfstep::train

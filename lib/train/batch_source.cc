#include "train/batch_source.h"

#include <array>
#include <map>

#include "core/error.h"
#include "graph/ops/ops.h"

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

  bool is_resident() const override { return false; }

 private:
  data::Prefetcher prefetcher_;
  const data::LoadedBatch* loaded_ = nullptr;
};

/// All rows of one tensor on a device, which gathers those of a batch itself.
class DeviceRows {
 public:
  DeviceRows(const backend::Backend& backend, const TensorView& host)
      : backend_(backend), buffer_(backend.memory, host.bytes()), rows_(host) {
    backend.memory->upload(host.data, buffer_.data(), host.bytes());
    rows_.data = buffer_.data();
  }

  /// to[i] = rows[order[i]]; `order` is an int32 vector on the device.
  void gather(const TensorView& order, const TensorView& to) {
    backend::Prepared& prepared = gathers_[order.elements()];
    if (!prepared.launch) prepared = prepare(order.elements());
    // The axis is known since prepare().
    const std::array in{rows_, order, TensorView{DType::int32, {}, nullptr}};
    prepared.launch->run({in, {&to, 1}, nullptr});
  }

 private:
  backend::Prepared prepare(std::int64_t batch) const {
    graph::Graph graph;
    graph::Builder b(graph, graph::op_table());
    const graph::Value rows = b.placeholder("rows", rows_.dtype, rows_.shape);
    const graph::Value order = b.placeholder("order", DType::int32, {batch});
    const graph::Value axis = b.scalar(DType::int32, 0);
    const graph::Attrs attrs{
        {"Tparams", rows_.dtype}, {"Tindices", DType::int32}, {"Taxis", DType::int32}};
    const graph::Value y = b.add("GatherV2", {rows, order, axis}, attrs, "batch");
    const backend::NodeView node{graph, graph.node(y.node)};
    const backend::Choice choice = backend::choose(backend_, node);
    require(choice.kernel != nullptr, "no kernel of {} gathers batches", backend_.name);
    backend::Prepared prepared = backend_.prepare(*choice.kernel, node);
    require(prepared.workspace_bytes == 0, "gathering a batch needs no workspace");
    return prepared;
  }

  const backend::Backend& backend_;
  backend::Buffer buffer_;
  TensorView rows_;
  std::map<std::int64_t, backend::Prepared> gathers_;  ///< by batch size
};

class DeviceBatches final : public BatchSource {
 public:
  DeviceBatches(const backend::Backend& backend,
                const data::SplitView& rows,
                const data::BatchOptions& batches)
      : backend_(backend),
        order_(rows.samples(), batches),
        images_(backend, rows.images),
        labels_(backend, rows.labels),
        epoch_order_(backend.memory, order_bytes(rows)),
        epoch_ordinals_(backend.memory, ordinal_bytes(rows, batches)) {}

  /// What it takes of the device's memory.
  static std::size_t bytes(const data::SplitView& rows, const data::BatchOptions& batches) {
    return rows.images.bytes() + rows.labels.bytes() + order_bytes(rows) +
           ordinal_bytes(rows, batches);
  }

  const data::Batch& take(std::int64_t ordinal) override {
    batch_ = order_.batch_at(ordinal);
    if (batch_.epoch != epoch_) upload_epoch(batch_.epoch);
    return batch_;
  }

  void fill(plan::Plan& plan) override {
    const std::int64_t first = batch_.index * order_.options().batch_size;
    const TensorView order{
        DType::int32,
        {batch_.size()},
        epoch_order_.data() + static_cast<std::size_t>(first) * sizeof(std::int32_t)};
    images_.gather(order, plan.input("images"));
    labels_.gather(order, plan.input("labels"));
    const TensorView ordinal = plan.input("ordinal");
    backend_.memory->copy(
        epoch_ordinals_.data() + static_cast<std::size_t>(batch_.index) * sizeof(std::int64_t),
        ordinal.data,
        ordinal.bytes());
  }

  bool is_resident() const override { return true; }

 private:
  static std::size_t order_bytes(const data::SplitView& rows) {
    return static_cast<std::size_t>(rows.samples()) * sizeof(std::int32_t);
  }

  static std::size_t ordinal_bytes(const data::SplitView& rows, const data::BatchOptions& batches) {
    const data::BatchOrder order(rows.samples(), batches);
    return static_cast<std::size_t>(order.steps_per_epoch()) * sizeof(std::int64_t);
  }

  void upload_epoch(std::int64_t epoch) {
    std::vector<std::int32_t> samples;
    std::vector<std::int64_t> ordinals;
    const std::int64_t steps = order_.steps_per_epoch();
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

  const backend::Backend& backend_;
  data::BatchOrder order_;
  DeviceRows images_, labels_;
  backend::Buffer epoch_order_;
  backend::Buffer epoch_ordinals_;
  std::int64_t epoch_ = -1;  ///< whose order and ordinals are on the device
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
  return std::make_unique<HostBatches>(rows, batches, prefetch);
}

}  // namespace halfstep::train

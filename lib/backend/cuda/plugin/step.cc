// Ops around a training step that the device runs without the host.

#include "backend/cuda/kernels/dataset.h"
#include "backend/cuda/kernels/state.h"
#include "backend/cuda/plugin/prepare.h"
#include "core/error.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// The input of KeepState with the log.
constexpr std::size_t k_kept_log = 4;

PreparedKernel prepare_gather_batch(const NodeView& node, const DeviceContext& context) {
  const Shape& rows = node.input(0).shape;
  kernels::GatherBatchParams params{.element_bytes = size_bytes(node.output().dtype),
                                    .cycle = node.attrs().get<std::int64_t>("steps"),
                                    .count = node.attrs().get<std::int64_t>("batch"),
                                    .row_elements = rows.elements(1, rows.rank())};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.rows = a.in[0].data;
    params.order = a.in[1].as<std::int32_t>();
    params.ordinal = a.in[2].as<std::int64_t>();
    params.batch = a.out[0].data;
    kernels::gather_batch(stream, params);
  }};
}

PreparedKernel prepare_next_batch(const NodeView& node, const DeviceContext& context) {
  kernels::NextBatchParams params{.cycle = node.attrs().get<std::int64_t>("steps"),
                                  .count = node.attrs().get<std::int64_t>("batch"),
                                  .tensors = node.outputs(),
                                  .tickets = context.tickets};
  for (std::size_t i = 0; i < params.tensors; ++i) {
    const Shape& rows = node.input(i + 2).shape;
    const DType to = node.output(i).dtype;
    if (to != node.input(i + 2).dtype) {
      params.tensor.at(i).to = to;
      params.tensor.at(i).scale =
          static_cast<float>(node.attrs().get<std::vector<double>>("scales").at(i));
    }
    params.tensor.at(i).row_bytes = static_cast<std::size_t>(rows.elements(1, rows.rank())) *
                                    size_bytes(node.input(i + 2).dtype);
  }
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.ordinal = a.in[0].as<std::int64_t>();
    params.order = a.in[1].as<std::int32_t>();
    for (std::size_t i = 0; i < params.tensors; ++i) {
      params.tensor.at(i).rows = a.in[i + 2].data;
      params.tensor.at(i).batch = a.out[i].data;
    }
    kernels::next_batch(stream, params);
  }};
}

/// The parameters of a log, and the addresses of a launch; `first`: the input with the log.
kernels::LogScalarsParams log_of(const NodeView& node, std::size_t first) {
  kernels::LogScalarsParams params{.slots = node.attrs().get<std::int64_t>("slots"),
                                   .count = node.inputs() - first - 2};
  for (std::size_t i = 0; i < params.count; ++i) {
    const std::size_t bytes = size_bytes(node.input(first + 2 + i).dtype);
    require(bytes <= kernels::LogScalarsParams::k_cell, "a value of {} bytes", bytes);
    params.bytes.at(i) = static_cast<std::uint8_t>(bytes);
  }
  return params;
}
void set_addresses(kernels::LogScalarsParams& params, const Args& a, std::size_t first) {
  params.log = a.in[first].data;
  params.ordinal = a.in[first + 1].as<std::int64_t>();
  for (std::size_t i = 0; i < params.count; ++i) params.values.at(i) = a.in[first + 2 + i].data;
}

PreparedKernel prepare_keep_state(const NodeView& node, const DeviceContext& context) {
  const graph::TensorType& state = node.input(2);
  kernels::KeepStateParams params{
      .bytes = static_cast<std::size_t>(state.shape.elements()) * size_bytes(state.dtype),
      .log = log_of(node, k_kept_log),
      .tickets = context.tickets};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.kept = a.in[0].data;
    params.taken = a.in[1].as<bool>();
    params.state = a.in[2].data;
    params.ok = a.in[3].as<bool>();
    set_addresses(params.log, a, k_kept_log);
    kernels::keep_state(stream, params);
  }};
}

PreparedKernel prepare_log_scalars(const NodeView& node, const DeviceContext& context) {
  kernels::LogScalarsParams params = log_of(node, 0);
  return {[=, stream = context.stream()](const Args& a) mutable {
    set_addresses(params, a, 0);
    kernels::log_scalars(stream, params);
  }};
}

}  // namespace

std::vector<Implementation> step_kernels() {
  return {
      {"cuda/gather_batch", prepare_gather_batch},
      {"cuda/keep_state", prepare_keep_state},
      {"cuda/log_scalars", prepare_log_scalars},
      {"cuda/next_batch", prepare_next_batch},
  };
}

}  // namespace halfstep::backend::cuda::plugin

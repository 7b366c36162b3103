// Ops around a training step that the device runs without the host.

#include "backend/cuda/kernels/dataset.h"
#include "backend/cuda/kernels/state.h"
#include "backend/cuda/plugin/prepare.h"
#include "core/error.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// The input of KeepState with the log.
constexpr std::size_t k_kept_log = 4;

Work prepare_gather_batch(const Facts& node, const Machine& machine) {
  const Shape& rows = node.input(0).shape;
  kernels::GatherBatchParams params{.element_bytes = size_bytes(node.output().dtype),
                                    .cycle = node.attrs.get<std::int64_t>("steps"),
                                    .count = node.attrs.get<std::int64_t>("batch"),
                                    .row_elements = rows.elements(1, rows.rank())};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.rows = a.in[0];
    params.order = a.input<std::int32_t>(1);
    params.ordinal = a.input<std::int64_t>(2);
    params.batch = a.out[0];
    kernels::gather_batch(stream, params);
  }};
}

Work prepare_next_batch(const Facts& node, const Machine& machine) {
  kernels::NextBatchParams params{.cycle = node.attrs.get<std::int64_t>("steps"),
                                  .count = node.attrs.get<std::int64_t>("batch"),
                                  .tensors = node.outputs.size(),
                                  .tickets = machine.tickets};
  for (std::size_t i = 0; i < params.tensors; ++i) {
    const Shape& rows = node.input(i + 2).shape;
    const DType to = node.outputs[i].dtype;
    if (to != node.input(i + 2).dtype) {
      params.tensor.at(i).to = to;
      params.tensor.at(i).scale =
          static_cast<float>(node.attrs.get<std::vector<double>>("scales").at(i));
    }
    params.tensor.at(i).row_bytes = static_cast<std::size_t>(rows.elements(1, rows.rank())) *
                                    size_bytes(node.input(i + 2).dtype);
  }
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.ordinal = a.variable<std::int64_t>(0);
    params.order = a.input<std::int32_t>(1);
    for (std::size_t i = 0; i < params.tensors; ++i) {
      params.tensor.at(i).rows = a.in[i + 2];
      params.tensor.at(i).batch = a.out[i];
    }
    kernels::next_batch(stream, params);
  }};
}

/// The parameters of a log, and the addresses of a launch; `first`: the input with the log.
kernels::LogScalarsParams log_of(const Facts& node, std::size_t first) {
  kernels::LogScalarsParams params{.slots = node.attrs.get<std::int64_t>("slots"),
                                   .count = node.inputs.size() - first - 2};
  for (std::size_t i = 0; i < params.count; ++i) {
    const std::size_t bytes = size_bytes(node.input(first + 2 + i).dtype);
    require(bytes <= kernels::LogScalarsParams::k_cell, "a value of {} bytes", bytes);
    params.bytes.at(i) = static_cast<std::uint8_t>(bytes);
  }
  return params;
}
void set_addresses(kernels::LogScalarsParams& params, const Addresses& a, std::size_t first) {
  params.log = a.variable<void>(first);
  params.ordinal = a.input<std::int64_t>(first + 1);
  for (std::size_t i = 0; i < params.count; ++i) params.values.at(i) = a.in[first + 2 + i];
}

Work prepare_keep_state(const Facts& node, const Machine& machine) {
  const graph::TensorType& state = node.input(2);
  kernels::KeepStateParams params{
      .bytes = static_cast<std::size_t>(state.shape.elements()) * size_bytes(state.dtype),
      .log = log_of(node, k_kept_log),
      .tickets = machine.tickets};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.kept = a.variable<void>(0);
    params.taken = a.variable<bool>(1);
    params.state = a.in[2];
    params.ok = a.input<bool>(3);
    set_addresses(params.log, a, k_kept_log);
    kernels::keep_state(stream, params);
  }};
}

Work prepare_log_scalars(const Facts& node, const Machine& machine) {
  kernels::LogScalarsParams params = log_of(node, 0);
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    set_addresses(params, a, 0);
    kernels::log_scalars(stream, params);
  }};
}

}  // namespace

std::vector<Row> ahead_rows() {
  return {
      {"cuda/gather_batch", prepare_gather_batch},
      {"cuda/keep_state", prepare_keep_state},
      {"cuda/log_scalars", prepare_log_scalars},
      {"cuda/next_batch", prepare_next_batch},
  };
}

}  // namespace halfstep::backend::cuda::plugin

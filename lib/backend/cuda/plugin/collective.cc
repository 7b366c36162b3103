// Sums over the ranks of a run (graph/ops/collective.cc), by NCCL beside the backward pass.

#include "backend/cuda/kernels/cast.h"
#include "backend/cuda/plugin/prepare.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// Enqueues a copy of numbers that rounds them where their dtypes differ.
void move_numbers(Vendor& vendor, const kernels::CastParams& params) {
  if (params.elements == 0) return;
  if (params.from != params.to) return kernels::cast(vendor.stream(), params);
  const auto bytes = static_cast<std::size_t>(params.elements) * size_bytes(params.to);
  vendor.copy(params.y, params.x, bytes);
}

Work prepare_all_reduce_start(const Facts& node, const Machine& machine) {
  const DType dtype = node.output().dtype;
  const std::int64_t count = node.output().shape.elements();
  std::vector<kernels::CastParams> pieces;
  std::int64_t filled = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::int64_t elements = node.input(i).shape.elements();
    pieces.push_back({.from = node.input(i).dtype, .to = dtype, .elements = elements});
    filled += elements;
  }
  const auto padding = static_cast<std::size_t>(count - filled) * size_bytes(dtype);
  return {[=, vendor = &machine.vendor](const Addresses& a) mutable {
    auto* next = a.output<std::byte>();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].x = a.in[i];
      pieces[i].y = next;
      move_numbers(*vendor, pieces[i]);
      next += static_cast<std::size_t>(pieces[i].elements) * size_bytes(dtype);
    }
    if (padding > 0) vendor->fill(next, 0, padding);
    vendor->start_sum(a.out[0], count, dtype);
  }};
}

Work prepare_all_reduce_wait(const Facts& node, const Machine& machine) {
  const DType dtype = node.input(0).dtype;
  std::vector<kernels::CastParams> pieces;
  for (const auto& output : node.outputs) {
    pieces.push_back({.from = dtype, .to = output.dtype, .elements = output.shape.elements()});
  }
  return {[=, vendor = &machine.vendor](const Addresses& a) mutable {
    vendor->wait_for_sum(a.in[0]);
    const auto* next = a.input<std::byte>(0);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      pieces[i].x = next;
      pieces[i].y = a.out[i];
      move_numbers(*vendor, pieces[i]);
      next += static_cast<std::size_t>(pieces[i].elements) * size_bytes(dtype);
    }
  }};
}

}  // namespace

std::vector<Row> collective_rows() {
  return {{"cuda/all_reduce_start", prepare_all_reduce_start},
          {"cuda/all_reduce_wait", prepare_all_reduce_wait}};
}

}  // namespace halfstep::backend::cuda::plugin

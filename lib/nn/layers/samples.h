#pragma once
// Shapes of batches and of their samples: a batch has one axis more, the first.

#include <fmt/core.h>

#include <numeric>
#include <utility>
#include <vector>

#include "nn/layers/layer.h"

namespace halfstep::nn {

/// [rows, ...sample].
inline Shape batched(std::int64_t rows, const Shape& sample) {
  std::vector<std::int64_t> extents{rows};
  extents.insert(extents.end(), sample.begin(), sample.end());
  return Shape(extents);
}

/// The extents of one sample of a batch.
inline Shape sample_of(const Shape& batch) { return Shape(batch.dims().subspan(1)); }

/// An axis of samples, counted with the batch as 0; a negative `axis` counts from the last one.
/// `rank`: the number of axes with the batch. Errors: UserError(config) where a sample has no such
/// axis.
inline std::int64_t sample_axis(const LayerContext& c, std::int64_t axis, std::size_t rank) {
  const auto axes = static_cast<std::int64_t>(rank);
  const std::int64_t at = axis < 0 ? axis + axes : axis;
  if (at < 1 || at >= axes) {
    c.fail(fmt::format("axis {} is not an axis of samples with {} axes", axis, axes - 1));
  }
  return at;
}

/// Swaps `axis` of a batch with the last one; its own inverse, and x itself for the last one.
inline graph::Value swap_with_last(graph::Builder& b, graph::Value x, std::size_t axis) {
  const std::size_t rank = b.shape(x).rank();
  if (axis + 1 == rank) return x;
  std::vector<std::int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[axis], order.back());
  return b.add("Transpose", {x, b.ints(order)});
}

}  // namespace halfstep::nn

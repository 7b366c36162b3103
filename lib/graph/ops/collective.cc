// Sums over the ranks of a run, in two ops, so that other ops run while the numbers travel.
//   AllReduceStart  packs the values one after the other into one tensor, cast to T and padded with
//                   zeros to a multiple of `ranks`, and begins its sum over the ranks
//   AllReduceWait   waits for the sum, whose pieces it returns as vectors of `counts` elements in
//                   the dtypes Tresults
// Only an AllReduceWait may read the result of an AllReduceStart: its memory changes until then.
// All ranks begin their exchanges in the order of the attribute `order`, those without one (0)
// last. The halves of a sum are the same in two more pairs, for tensors that the ranks divide. Of n
// elements rank r has the slice of ceil(n / ranks) from r ceil(n / ranks) on, whose elements beyond
// the end are padding; a packed tensor has the slices of rank 0, one after the other, then those of
// rank 1.
//   ReduceScatterStart  packs the values by slices, with zeros as padding, and begins their sum
//   ReduceScatterWait   waits for the sums of this rank's slices, of `counts` elements each
//   AllGatherStart      packs this rank's slices, and begins to exchange them
//   AllGatherWait       waits for the slices of all ranks, and writes them to the variables of T,
//                       with `counts` elements

#include <fmt/core.h>

#include <numeric>
#include <utility>

#include "core/ranges.h"
#include "graph/op_handles.h"
#include "graph/ops/fused_update.h"
#include "graph/ops/ops.h"

namespace halfstep::graph::ops {
namespace {

std::vector<Shape> infer_start(const InferContext& c) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < c.inputs(); ++i) count += c.input(i).shape.elements();
  const auto ranks = c.node.attrs.get<std::int64_t>("ranks");
  if (ranks < 1) throw ShapeError("a sum over less than one rank");
  return {Shape{ranks * slice_elements(count, ranks)}};
}

std::int64_t ranks_of(const InferContext& c) {
  const auto ranks = c.node.attrs.get<std::int64_t>("ranks");
  const auto rank = c.node.attrs.get_or<std::int64_t>("rank", 0);
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    throw ShapeError(fmt::format("rank {} of {}", rank, ranks));
  }
  return ranks;
}

std::vector<Shape> infer_scatter_start(const InferContext& c) {
  const std::int64_t ranks = ranks_of(c);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    count += slice_elements(c.input(i).shape.elements(), ranks);
  }
  return {Shape{ranks * count}};
}

/// A packed tensor must have slices of so many elements.
void expect_slices(const InferContext& c, std::int64_t ranks, std::int64_t elements) {
  if (c.input(0).shape == Shape{ranks * elements}) return;
  throw ShapeError(fmt::format(
      "slices of {} elements for {} ranks from {}", elements, ranks, to_string(c.input(0).shape)));
}

std::vector<Shape> infer_scatter_wait(const InferContext& c) {
  const auto& counts = c.node.attrs.get<std::vector<std::int64_t>>("counts");
  expect_slices(c, ranks_of(c), std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  return mapped<Shape>(counts, [](std::int64_t count) { return Shape{count}; });
}

std::vector<Shape> infer_gather_start(const InferContext& c) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < c.inputs(); ++i) count += c.input(i).shape.elements();
  return {Shape{ranks_of(c) * count}};
}

std::vector<Shape> infer_gather_wait(const InferContext& c) {
  const std::int64_t ranks = ranks_of(c);
  const auto& counts = c.node.attrs.get<std::vector<std::int64_t>>("counts");
  std::int64_t count = 0;
  for (std::size_t i = 1; i < c.inputs(); ++i) {
    const TensorType type = variable_type(c.producer(i));
    if (type.dtype != c.input(0).dtype || i > counts.size() ||
        type.shape.elements() != counts[i - 1]) {
      throw ShapeError(fmt::format("slices of {} for a variable {} {}",
                                   name(c.input(0).dtype),
                                   name(type.dtype),
                                   to_string(type.shape)));
    }
    count += slice_elements(counts[i - 1], ranks);
  }
  expect_slices(c, ranks, count);
  return {};
}

std::vector<Shape> infer_wait(const InferContext& c) {
  const auto& counts = c.node.attrs.get<std::vector<std::int64_t>>("counts");
  const auto all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (all > c.input(0).shape.elements()) {
    throw ShapeError(fmt::format("{} numbers from {}", all, to_string(c.input(0).shape)));
  }
  return mapped<Shape>(counts, [](std::int64_t count) { return Shape{count}; });
}

}  // namespace

Value start_all_reduce(Builder& b, std::vector<Value> values, DType dtype, std::int64_t ranks) {
  return b.add("AllReduceStart", std::move(values), {{"T", dtype}, {"ranks", ranks}}, "start");
}

std::vector<TensorType> types_of(const Builder& b, const std::vector<Value>& values) {
  return mapped<TensorType>(values, [&](const Value& value) { return b.type(value); });
}

std::vector<Value> wait_for_all_reduce(Builder& b,
                                       Value sum,
                                       const std::vector<TensorType>& types) {
  std::vector<std::int64_t> counts;
  std::vector<DType> dtypes;
  for (const TensorType& type : types) {
    counts.push_back(type.shape.elements());
    dtypes.push_back(type.dtype);
  }
  const int wait = b.add_node("AllReduceWait",
                              {sum},
                              {{"Tresults", std::move(dtypes)}, {"counts", std::move(counts)}},
                              "wait");
  std::vector<Value> sums;
  for (std::size_t i = 0; i < types.size(); ++i) {
    sums.push_back(reshape(b, {wait, static_cast<int>(i)}, types[i].shape));
  }
  return sums;
}

std::int64_t slice_elements(std::int64_t elements, std::int64_t ranks) {
  return (elements + ranks - 1) / ranks;
}

int collective_phases(const Node& node) {
  if (node.is(k_all_reduce_start)) return 2;
  return node.is(k_reduce_scatter_start, k_all_gather_start) ? 1 : 0;
}

std::vector<OpDef> collective_ops() {
  return {
      define("AllReduceStart",
             "values: Tin -> sum: T",
             "Tin: list(type), T: {bfloat16, half, float}, ranks: int, order: int = 0",
             {.infer = infer_start, .stateful = true}),
      define("AllReduceWait",
             "sum: T -> results: Tresults",
             "T: {bfloat16, half, float}, Tresults: list(type), counts: list(int)",
             {.infer = infer_wait, .stateful = true}),
      define("ReduceScatterStart",
             "values: Tin -> packed: T",
             "Tin: list(type), T: {bfloat16, half, float}, ranks: int, order: int = 0",
             {.infer = infer_scatter_start, .stateful = true}),
      define("ReduceScatterWait",
             "packed: T -> slices: Tresults",
             "T: {bfloat16, half, float}, Tresults: list(type), counts: list(int), rank: int, "
             "ranks: int",
             {.infer = infer_scatter_wait, .stateful = true}),
      define("AllGatherStart",
             "slices: Tin -> packed: T",
             "Tin: list(type), T: {bfloat16, half, float}, rank: int, ranks: int, order: int = 0",
             {.infer = infer_gather_start, .stateful = true}),
      define("AllGatherWait",
             "packed: T, variables: Tvariables",
             "T: {bfloat16, half, float}, Tvariables: list(type), counts: list(int), ranks: int",
             {.infer = infer_gather_wait, .stateful = true}),
  };
}

}  // namespace halfstep::graph::ops

// Sums over the ranks of a run, in two ops, so that other ops run while the numbers travel.
//   AllReduceStart  packs the values one after the other into one tensor, cast to T and padded with
//                   zeros to a multiple of `ranks`, and begins its sum over the ranks
//   AllReduceWait   waits for the sum, whose pieces it returns as vectors of `counts` elements in
//                   the dtypes Tresults
// Only an AllReduceWait may read the result of an AllReduceStart: its memory changes until then.

#include <fmt/core.h>

#include <numeric>
#include <utility>

#include "graph/ops/ops.h"

namespace halfstep::graph::ops {
namespace {

std::vector<Shape> infer_start(const InferContext& c) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < c.inputs(); ++i) count += c.input(i).shape.elements();
  const auto ranks = c.node.attrs.get<std::int64_t>("ranks");
  if (ranks < 1) throw ShapeError("a sum over less than one rank");
  return {Shape{(count + ranks - 1) / ranks * ranks}};
}

std::vector<Shape> infer_wait(const InferContext& c) {
  const auto& counts = c.node.attrs.get<std::vector<std::int64_t>>("counts");
  const auto all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  if (all > c.input(0).shape.elements()) {
    throw ShapeError(fmt::format("{} numbers from {}", all, to_string(c.input(0).shape)));
  }
  std::vector<Shape> shapes;
  for (const std::int64_t count : counts) shapes.push_back(Shape{count});
  return shapes;
}

}  // namespace

Value start_all_reduce(Builder& b, std::vector<Value> values, DType dtype, std::int64_t ranks) {
  return b.add("AllReduceStart", std::move(values), {{"T", dtype}, {"ranks", ranks}}, "start");
}

std::vector<TensorType> types_of(const Builder& b, const std::vector<Value>& values) {
  std::vector<TensorType> types;
  for (const Value& value : values) types.push_back(b.type(value));
  return types;
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

std::vector<OpDef> collective_ops() {
  return {
      define("AllReduceStart",
             "values: Tin -> sum: T",
             "Tin: list(type), T: {bfloat16, half, float}, ranks: int",
             {.infer = infer_start, .stateful = true}),
      define("AllReduceWait",
             "sum: T -> results: Tresults",
             "T: {bfloat16, half, float}, Tresults: list(type), counts: list(int)",
             {.infer = infer_wait, .stateful = true}),
  };
}

}  // namespace halfstep::graph::ops

// Ops around a training step that a device runs without the host: selection of the next batch, a
// log of the step's scalars, and a snapshot of the state at the first step that is not finite.
//   GatherBatch  batch[i] = rows[order[at + i]] for the attribute's `batch` rows, where
//                at = (ordinal mod steps) * batch: `order` is the permutation of one epoch of
//                `steps` full batches and possibly a tail.
//   NextBatch    ordinal += 1, and the rows of that batch of each tensor, as by GatherBatch; where
//                Tout is another dtype than Tin, float32(row) * scale in float32, rounded to it.
//   LogScalars   row `ordinal mod slots` of the log = the bytes of each value, in cells of 8.
//   KeepState    where ok is false and taken is: kept = state, taken = true; then as LogScalars.

#include <fmt/format.h>

#include "graph/ops/ops.h"

namespace halfstep::graph::ops {
namespace {

constexpr std::int64_t k_cell = 8;

const Attrs& handle(const InferContext& c, std::size_t i) { return c.producer(i).attrs; }

void expect(bool fits, const InferContext& c, std::string_view what) {
  if (!fits) throw ShapeError(fmt::format("{}: {}", c.node.op, what));
}

/// The samples of a batch, after a check of input 1, the order of all samples.
std::int64_t batch_of(const InferContext& c) {
  const auto batch = c.node.attrs.get<std::int64_t>("batch");
  const auto steps = c.node.attrs.get<std::int64_t>("steps");
  const Shape& order = c.input(1).shape;
  expect(order.rank() == 1, c, "the order must be a vector");
  expect(batch > 0 && steps > 0 && (steps - 1) * batch < order[0],
         c,
         "more batches than the order has");
  return batch;
}

std::vector<Shape> infer_gather_batch(const InferContext& c) {
  const Shape& rows = c.input(0).shape;
  expect(rows.rank() > 0, c, "no rows to take some of");
  const std::int64_t batch = batch_of(c);
  expect(c.input(2).shape.elements() == 1, c, "one ordinal is wanted");
  return {rows.with(0, batch)};
}

std::vector<Shape> infer_next_batch(const InferContext& c) {
  expect(handle(c, 0).get<DType>("dtype") == DType::int64, c, "the ordinal must be int64");
  const std::int64_t batch = batch_of(c);
  std::vector<Shape> batches;
  const auto& stored = c.node.attrs.get<std::vector<DType>>("Tin");
  const auto& batch_dtypes = c.node.attrs.get<std::vector<DType>>("Tout");
  const std::size_t scales = c.node.attrs.get<std::vector<double>>("scales").size();
  expect(batch_dtypes == stored || scales == stored.size(), c, "a scale is wanted for each tensor");
  for (std::size_t i = 2; i < c.inputs(); ++i) {
    expect(c.input(i).shape.rank() > 0, c, "no rows to take some of");
    batches.push_back(c.input(i).shape.with(0, batch));
  }
  return batches;
}

/// `log`: the input with the log; the ordinal and the values follow.
void check_log(const InferContext& c, std::size_t log) {
  const std::int64_t slots = c.node.attrs.get<std::int64_t>("slots");
  const auto values = static_cast<std::int64_t>(c.inputs() - log) - 2;
  expect(slots > 0 && handle(c, log).get<DType>("dtype") == DType::uint8 &&
             handle(c, log).get<Shape>("shape") == Shape{slots * values * k_cell},
         c,
         "the log must be uint8 with 8 bytes for each value of each slot");
  for (std::size_t i = log + 2; i < c.inputs(); ++i) {
    expect(c.input(i).shape.elements() == 1, c, "only single numbers are logged");
  }
}

std::vector<Shape> infer_log(const InferContext& c) {
  check_log(c, 0);
  return {};
}

std::vector<Shape> infer_keep(const InferContext& c) {
  expect(handle(c, 0).get<Shape>("shape") == c.input(2).shape,
         c,
         "the copy must be as large as the state");
  expect(c.input(3).shape.elements() == 1, c, "one flag is wanted");
  check_log(c, 4);
  return {};
}

}  // namespace

std::vector<OpDef> ahead_ops() {
  return {
      define("GatherBatch",
             "rows: T, order: int32, ordinal: int64 -> batch: T",
             "T: type, batch: int, steps: int",
             {.infer = infer_gather_batch, .stage = Stage::lowered}),
      define("NextBatch",
             "ordinal: resource, order: int32, rows: Tin -> batches: Tout",
             "Tin: list(type), Tout: list(type), batch: int, steps: int, scales: list(float) = []",
             {.infer = infer_next_batch, .stateful = true, .stage = Stage::lowered}),
      define("LogScalars",
             "log: resource, ordinal: int64, values: Tin",
             "Tin: list(type), slots: int",
             {.infer = infer_log, .stateful = true, .stage = Stage::lowered}),
      define("KeepState",
             "kept: resource, taken: resource, state: T, ok: bool, log: resource, ordinal: int64, "
             "values: Tin",
             "T: type, Tin: list(type), slots: int",
             {.infer = infer_keep, .stateful = true, .stage = Stage::lowered}),
  };
}

}  // namespace halfstep::graph::ops

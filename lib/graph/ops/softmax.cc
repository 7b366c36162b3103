// Softmax over the last axis, and the cross-entropies that contain it.
//
// SoftmaxLoss is a softmax in float32 of the logits, the sparse cross-entropy of it and of the
// labels, and the ops around them, in one pass. Lowering creates it. One result per letter of
// `forms`:
//   p  the softmax, float32 [rows, classes]
//   l  the losses of the rows, float32 [rows]
//   m  the mean of the losses, float32 scalar
//   c  the number of rows whose label has the largest p, float32 scalar; of equal ones the first
//      counts as the largest
//   g  the gradient of the logits, T [rows, classes]: that of the mean times `seed`, rounded to
//      float32 after each operation, as the separate ops round
// args = seed: float32 with g. `classes`, if not 0, are the first columns of longer rows: the other
// columns of the logits are ignored, those of g are 0, and p has none.

#include "core/error.h"
#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

std::vector<Shape> infer_rows(const InferContext& c) {
  if (c.input(0).shape.rank() == 0) {
    throw ShapeError(fmt::format("{} wants rank 1 or more, got a scalar", c.node.op));
  }
  return {c.input(0).shape};
}

/// Loss per row and the gradient of the logits.
std::vector<Shape> loss_shapes(const InferContext& c, bool sparse) {
  const Shape& logits = c.input(0).shape;
  if (logits.rank() != 2 || c.input(1).shape != (sparse ? Shape{logits[0]} : logits)) {
    throw ShapeError(fmt::format("{} wants {}, got {} and {}",
                                 c.node.op,
                                 sparse ? "logits [batch, classes] and labels [batch]"
                                        : "logits and labels of one shape [batch, classes]",
                                 to_string(logits),
                                 to_string(c.input(1).shape)));
  }
  return {Shape{logits[0]}, logits};
}
std::vector<Shape> infer_cross_entropy(const InferContext& c) { return loss_shapes(c, false); }
std::vector<Shape> infer_sparse_cross_entropy(const InferContext& c) {
  return loss_shapes(c, true);
}

std::vector<Shape> infer_softmax_loss(const InferContext& c) {
  const Shape logits = infer_sparse_cross_entropy(c)[1];
  const std::string& forms = c.node.attrs.get<std::string>("forms");
  const bool seeded = forms.find('g') != std::string::npos;
  if (c.inputs() != (seeded ? 3U : 2U) || (seeded && c.input(2).shape.elements() != 1)) {
    throw ShapeError("one seed is wanted for the gradient, and none without it");
  }
  const auto classes = c.node.attrs.get<std::int64_t>("classes");
  if (classes < 0 || classes > logits[1]) {
    throw ShapeError(fmt::format("{} columns have no {} classes", logits[1], classes));
  }
  std::vector<Shape> results;
  for (const char form : forms) {
    switch (form) {
      case 'p':
        results.push_back(classes == 0 ? logits : Shape{logits[0], classes});
        break;
      case 'g':
        results.push_back(logits);
        break;
      case 'l':
        results.push_back(Shape{logits[0]});
        break;
      case 'm':
      case 'c':
        results.push_back(Shape{});
        break;
      default:
        throw ShapeError(fmt::format("there is no form '{}'", form));
    }
  }
  return results;
}

Value sum_rows(Builder& b, Value x) {
  return reduce(b, "Sum", x, std::vector<std::int64_t>{-1}, true);
}

/// (dy - sum(dy * y)) * y
std::vector<Value> gradient_softmax(const GradientContext& c) {
  Builder& b = c.b;
  const Value sums = sum_rows(b, b.add("Mul", {c.dy[0], c.output(0)}));
  return {b.add("Mul", {b.add("Sub", {c.dy[0], sums}), c.output(0)})};
}

/// dy - sum(dy) * exp(y)
std::vector<Value> gradient_log_softmax(const GradientContext& c) {
  Builder& b = c.b;
  const Value softmax = b.add("Exp", {c.output(0)});
  const Value scaled = b.add("Mul", {sum_rows(b, c.dy[0]), softmax});
  return {b.add("Sub", {c.dy[0], scaled})};
}

/// The gradient of the loss, one value per row, multiplied into the rows of a matrix.
Value over_rows(Builder& b, Value per_row, Value matrix) {
  const Value column = b.add("ExpandDims", {per_row, b.scalar(DType::int32, -1)});
  return b.add("Mul", {column, matrix});
}

std::vector<Value> gradient_cross_entropy(const GradientContext& c) {
  Builder& b = c.b;
  std::vector<Value> dx(2);
  if (!c.dy[0].valid()) return dx;
  if (needs_gradient(c, 0)) dx[0] = over_rows(b, c.dy[0], c.output(1));
  if (needs_gradient(c, 1)) {
    const Value log_softmax = b.add("LogSoftmax", {c.input(0)});
    dx[1] = over_rows(b, c.dy[0], b.add("Neg", {log_softmax}));
  }
  return dx;
}

std::vector<Value> gradient_sparse_cross_entropy(const GradientContext& c) {
  if (!c.dy[0].valid()) return {Value{}, Value{}};
  return {over_rows(c.b, c.dy[0], c.output(1)), Value{}};
}

}  // namespace

std::vector<OpDef> softmax_ops() {
  return {
      define("LogSoftmax",
             "logits: T -> logsoftmax: T",
             k_float,
             {.infer = infer_rows, .gradient = gradient_log_softmax}),
      define("Softmax",
             "logits: T -> softmax: T",
             k_float,
             {.infer = infer_rows, .gradient = gradient_softmax}),
      define("SoftmaxCrossEntropyWithLogits",
             "features: T, labels: T -> loss: T, backprop: T",
             k_float,
             {.infer = infer_cross_entropy, .gradient = gradient_cross_entropy}),
      define("SparseSoftmaxCrossEntropyWithLogits",
             "features: T, labels: Tlabels -> loss: T, backprop: T",
             "T: {half, bfloat16, float, double}, Tlabels: {int32, int64} = int64",
             {.infer = infer_sparse_cross_entropy, .gradient = gradient_sparse_cross_entropy}),
      define("SoftmaxLoss",
             "logits: T, labels: Tlabels, args: Targs -> results: Tresults",
             "T: {half, bfloat16, float}, Tlabels: {int32, int64}, Targs: list(type), Tresults: "
             "list(type), forms: string, classes: int = 0",
             {.infer = infer_softmax_loss, .stage = Stage::lowered}),
  };
}

}  // namespace halfstep::graph::ops

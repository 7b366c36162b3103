// MatMul, its batched forms, and BiasAdd. Lowering creates CastBiasAddGrad, the BiasAddGrad of
// values cast to float32.

#include "core/error.h"
#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

constexpr std::string_view k_number =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, "
    "complex64, complex128, qint8, quint8, qint32}, data_format: string = 'NHWC'";

/// The names of an op's pair of transposition flags.
struct Flags {
  std::string_view a;
  std::string_view b;
};
constexpr Flags k_transpose{"transpose_a", "transpose_b"};
constexpr Flags k_adjoint{"adj_x", "adj_y"};

[[noreturn]] void refuse(const InferContext& c) {
  throw ShapeError(fmt::format("{} cannot multiply {} by {}",
                               c.node.op,
                               to_string(c.input(0).shape),
                               to_string(c.input(1).shape)));
}

std::vector<Shape> infer_batch_matmul(const InferContext& c) {
  const bool tx = c.node.attrs.get<bool>(k_adjoint.a);
  const bool ty = c.node.attrs.get<bool>(k_adjoint.b);
  const Shape& x = c.input(0).shape;
  const Shape& y = c.input(1).shape;
  if (x.rank() < 2 || y.rank() < 2) refuse(c);
  const auto row = [](const Shape& s) { return s[s.rank() - 2]; };
  const std::optional<Shape> batch =
      broadcast(Shape(x.dims().first(x.rank() - 2)), Shape(y.dims().first(y.rank() - 2)));
  if (!batch || (tx ? row(x) : x.back()) != (ty ? y.back() : row(y))) refuse(c);
  std::vector<std::int64_t> dims = extents(*batch);
  dims.push_back(tx ? x.back() : row(x));
  dims.push_back(ty ? row(y) : y.back());
  return {Shape(dims)};
}

/// The two matmuls of the gradient; with `t` for transposed, by (transpose_a, transpose_b): da = dy
/// bt | dy b | b dyt | bt dyt and db = at dy | dyt a | a dy | dyt at.
std::vector<Value> gradient_any_matmul(const GradientContext& c, const Flags& flags) {
  const bool ta = c.node.attrs.get<bool>(flags.a);
  const bool tb = c.node.attrs.get<bool>(flags.b);
  const Value a = c.input(0);
  const Value b = c.input(1);
  const Value dy = c.dy[0];
  const auto matmul = [&](Value x, Value y, bool tx, bool ty) {
    return c.b.add(c.node.op, {x, y}, {{std::string(flags.a), tx}, {std::string(flags.b), ty}});
  };
  std::vector<Value> dx(2);
  if (needs_gradient(c, 0)) {
    const Value da = ta ? matmul(b, dy, tb, true) : matmul(dy, b, false, !tb);
    dx[0] = unbroadcast(c.b, da, c.b.shape(a));
  }
  if (needs_gradient(c, 1)) {
    const Value db = tb ? matmul(dy, a, true, ta) : matmul(a, dy, !ta, false);
    dx[1] = unbroadcast(c.b, db, c.b.shape(b));
  }
  return dx;
}

std::vector<Value> gradient_matmul(const GradientContext& c) {
  return gradient_any_matmul(c, k_transpose);
}

std::vector<Value> gradient_batch_matmul(const GradientContext& c) {
  return gradient_any_matmul(c, k_adjoint);
}

std::int64_t channels(const InferContext& c) {
  const Shape& shape = c.input(0).shape;
  const std::string& format = c.node.attrs.get<std::string>("data_format");
  if (format != "NHWC" && format != "NCHW") {
    throw ShapeError(fmt::format("{}: unknown data_format '{}'", c.node.op, format));
  }
  if (shape.rank() < 2) {
    throw ShapeError(fmt::format("{} wants rank 2 or more, got {}", c.node.op, to_string(shape)));
  }
  return format == "NHWC" ? shape.back() : shape[1];
}

std::vector<Shape> infer_bias_add(const InferContext& c) {
  if (c.input(1).shape != Shape{channels(c)}) {
    throw ShapeError(fmt::format("BiasAdd wants a bias of shape [{}] for {}, got {}",
                                 channels(c),
                                 to_string(c.input(0).shape),
                                 to_string(c.input(1).shape)));
  }
  return {c.input(0).shape};
}

std::vector<Shape> infer_bias_add_grad(const InferContext& c) { return {Shape{channels(c)}}; }

std::vector<Value> gradient_bias_add(const GradientContext& c) {
  const Attrs format{{"data_format", c.node.attrs.get<std::string>("data_format")}};
  return {c.dy[0], c.b.add("BiasAddGrad", {c.dy[0]}, format)};
}

}  // namespace

std::vector<Shape> infer_matmul(const InferContext& c) {
  const bool ta = c.node.attrs.get<bool>(k_transpose.a);
  const bool tb = c.node.attrs.get<bool>(k_transpose.b);
  const Shape& a = c.input(0).shape;
  const Shape& b = c.input(1).shape;
  if (a.rank() != 2 || b.rank() != 2 || a[ta ? 0 : 1] != b[tb ? 1 : 0]) refuse(c);
  return {Shape{a[ta ? 1 : 0], b[tb ? 0 : 1]}};
}

std::vector<OpDef> matmul_ops() {
  return {
      define("BatchMatMulV2",
             "x: T, y: T -> output: T",
             "T: {bfloat16, half, float, double, int16, int32, int64, uint8, uint16, uint32, "
             "uint64, complex64, complex128}, adj_x: bool = false, adj_y: bool = false, grad_x: "
             "bool = false, grad_y: bool = false",
             {.infer = infer_batch_matmul,
              .gradient = gradient_batch_matmul,
              .promotion = Promotion::operands}),
      define("BiasAdd",
             "value: T, bias: T -> output: T",
             k_number,
             {.infer = infer_bias_add, .gradient = gradient_bias_add, .elementwise = 2}),
      define("BiasAddGrad",
             "out_backprop: T -> output: T",
             k_number,
             {.infer = infer_bias_add_grad, .promotion = Promotion::operands}),
      define("CastBiasAddGrad",
             "out_backprop: SrcT -> output: float",
             "SrcT: {bfloat16, half}, data_format: string = 'NHWC'",
             {.infer = infer_bias_add_grad, .stage = Stage::lowered}),
      define(
          "MatMul",
          "a: T, b: T -> product: T",
          "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, "
          "complex64, complex128}, transpose_a: bool = false, transpose_b: bool = false, grad_a: "
          "bool = false, grad_b: bool = false",
          {.infer = infer_matmul, .gradient = gradient_matmul, .promotion = Promotion::operands}),
  };
}

}  // namespace halfstep::graph::ops

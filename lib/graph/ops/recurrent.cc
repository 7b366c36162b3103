// Recurrent layers over a sequence whose input projections p = x K are given, in the arrangement of
// Keras. At each step, with r = h R + bias, s the recurrent activation and g the activation:
//   lstm        i, f, c', o = p + r;  c = s(f) c + s(i) g(c');  h = s(o) g(c)
//   gru         z, a, - = p + r;  h' = g(p_h + s(a) r_h);  h = s(z) h + (1 - s(z)) h'
//   gru_reset_before  the same with h' = g(p_h + (s(a) h) R_h + bias_h)
//   simple_rnn  h = g(p + r)
// h and s(a) h are rounded to T after each step, c is kept in U. With a mask the operand of the
// recurrent matmul is h times the mask: dropout with one draw for all steps and gates (Gal and
// Ghahramani 2016). Where `taken` is false for a step of a sample, h and c are kept, h is the
// output and the gates are 0. Results that only the gradient reads are empty unless is_training:
//   gates    lstm: s(i), s(f), g(c'), s(o);  gru: s(z), s(a), h', r_h; gru_reset_before: s(a) h
//            in place of r_h
//   carries  c of each step
//   states   the operand of the recurrent matmul at each step
// Sources: Hochreiter and Schmidhuber 1997, Gers et al. 2000; Cho et al. 2014, whose gate is before
// the matmul; after it as in cuDNN.

#include "graph/ops/recurrent.h"

#include <fmt/format.h>

#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

constexpr std::string_view k_types = "T: {half, bfloat16, float, double}, U: {float, double}, ";
constexpr std::string_view k_attrs =
    "rnn_mode: string, activation: string = 'Tanh', recurrent_activation: string = 'Sigmoid', "
    "go_backwards: bool = false, is_training: bool = true";

RnnGeometry geometry(const Attrs& attrs) {
  const std::string& mode = attrs.get<std::string>("rnn_mode");
  RnnGeometry g;
  g.backwards = attrs.get<bool>("go_backwards");
  g.training = attrs.get<bool>("is_training");
  if (mode == "lstm") return g;
  if (mode == "gru" || mode == "gru_reset_before") {
    g.mode = mode == "gru" ? RnnMode::gru : RnnMode::gru_reset_before;
    g.gates = 3;
    return g;
  }
  if (mode != "simple_rnn") throw ShapeError("there is no rnn_mode '" + mode + "'");
  g.mode = RnnMode::simple_rnn;
  g.gates = 1;
  g.saved = 0;
  return g;
}

void check_activation(const Attrs& attrs, std::string_view attr) {
  const std::string& name = attrs.get<std::string>(attr);
  for (const std::string_view known : {"Identity", "Relu", "Sigmoid", "Tanh"}) {
    if (name == known) return;
  }
  throw ShapeError(fmt::format("{} must be Identity, Relu, Sigmoid or Tanh, got '{}'", attr, name));
}

/// Shape of a tensor that only an lstm has, else of an empty one.
Shape of_lstm(const RnnGeometry& g, const Shape& shape) {
  return g.mode == RnnMode::lstm ? shape : Shape{0};
}

std::vector<Shape> infer_rnn(const InferContext& c) {
  check_activation(c.node.attrs, "activation");
  check_activation(c.node.attrs, "recurrent_activation");
  const RnnGeometry g = rnn_geometry(c.node.attrs, c.input(0).shape);
  const Shape state{g.batch, g.units}, sequence{g.batch, g.steps, g.units};
  expect_input(c, 1, {g.units, g.columns()});
  expect_input(c, 2, {g.columns()});
  expect_input(c, 3, state);
  expect_input(c, 4, of_lstm(g, state));
  if (c.inputs() > 5) expect_input(c, 5, state);
  if (c.inputs() > 6) expect_input(c, 6, {g.batch, g.steps});
  const bool gated = g.training && g.saved > 0;
  return {sequence,
          of_lstm(g, state),
          gated ? Shape{g.batch, g.steps, g.saved * g.units} : Shape{0},
          g.training ? of_lstm(g, sequence) : Shape{0},
          g.training ? sequence : Shape{0}};
}

std::vector<Shape> infer_rnn_grad(const InferContext& c) {
  const Shape sequence = c.input(0).shape;
  const RnnGeometry g = rnn_grad_geometry(c.node.attrs, sequence);
  const Shape state{g.batch, g.units}, projections{g.batch, g.steps, g.columns()};
  expect_input(c, 1, of_lstm(g, state));
  expect_input(c, 2, {g.units, g.columns()});
  expect_input(c, 3, state);
  expect_input(c, 4, of_lstm(g, state));
  expect_input(c, 5, sequence);
  expect_input(c, 6, g.saved > 0 ? Shape{g.batch, g.steps, g.saved * g.units} : Shape{0});
  expect_input(c, 7, of_lstm(g, sequence));
  if (c.inputs() > 8) expect_input(c, 8, state);
  if (c.inputs() > 9) expect_input(c, 9, {g.batch, g.steps});
  return {projections, g.mode == RnnMode::gru ? projections : Shape{0}, state, of_lstm(g, state)};
}

/// The gradients of kernel and bias are a matmul and a sum over all steps at once.
std::vector<Value> gradient_rnn(const GradientContext& c) {
  Builder& b = c.b;
  const RnnGeometry g = rnn_geometry(c.node.attrs, b.shape(c.input(0)));
  require(g.training, "the gradient of an RNN that kept no gates");
  const auto output_gradient = [&](std::size_t i) {
    const TensorType& type = b.type(c.output(i));
    return c.dy[i].valid() ? c.dy[i] : b.fill(type.dtype, type.shape, 0);
  };
  std::vector<Value> inputs{output_gradient(0),
                            output_gradient(1),
                            c.input(1),
                            c.input(3),
                            c.input(4),
                            c.output(0),
                            c.output(2),
                            c.output(3)};
  for (std::size_t i = 5; i < c.node.inputs.size(); ++i) inputs.push_back(c.input(i));
  Attrs attrs;
  for (const char* name : {"rnn_mode", "activation", "recurrent_activation", "go_backwards"}) {
    attrs.set(name, *c.node.attrs.find(name));
  }
  const int node = b.add_node("RNNGrad", std::move(inputs), std::move(attrs));

  const std::int64_t rows = g.batch * g.steps;
  const Value recurrent =
      reshape(b, {node, g.mode == RnnMode::gru ? 1 : 0}, Shape{rows, g.columns()});
  std::vector<Value> dx(c.node.inputs.size());
  dx[0] = {node, 0};
  if (needs_gradient(c, 1)) {
    const auto matmul = [&](Value states, Value sums) {
      return b.add("MatMul", {states, sums}, {{"transpose_a", true}});
    };
    const Value states = reshape(b, c.output(4), Shape{rows, g.units});
    if (g.state_columns() == g.columns()) {
      dx[1] = matmul(states, recurrent);
    } else {
      const auto columns = [&](Value of, std::int64_t first, std::int64_t count) {
        return b.add("Slice", {of, b.ints({0, first}), b.ints({rows, count})});
      };
      const Value gates = reshape(b, c.output(2), Shape{rows, g.saved * g.units});
      const Value candidate =
          matmul(columns(gates, 3 * g.units, g.units), columns(recurrent, 2 * g.units, g.units));
      dx[1] = b.add("ConcatV2",
                    {matmul(states, columns(recurrent, 0, g.state_columns())),
                     candidate,
                     b.scalar(DType::int32, 1)});
    }
  }
  if (needs_gradient(c, 2)) dx[2] = b.add("BiasAddGrad", {recurrent});
  if (needs_gradient(c, 3)) dx[3] = {node, 2};
  if (needs_gradient(c, 4) && g.mode == RnnMode::lstm) dx[4] = {node, 3};
  return dx;
}

RnnGeometry checked(RnnGeometry g, const Shape& x, std::int64_t blocks) {
  if (x.rank() != 3 || x[1] < 1 || x[2] < blocks || x[2] % blocks != 0) {
    throw ShapeError(fmt::format("an RNN of {} gates takes [batch, steps, {} * units], got {}",
                                 blocks,
                                 blocks,
                                 to_string(x)));
  }
  g.batch = x[0];
  g.steps = x[1];
  g.units = x[2] / blocks;
  return g;
}

}  // namespace

RnnGeometry rnn_geometry(const Attrs& attrs, const Shape& projections) {
  const RnnGeometry g = geometry(attrs);
  return checked(g, projections, g.gates);
}

RnnGeometry rnn_grad_geometry(const Attrs& attrs, const Shape& output) {
  return checked(geometry(attrs), output, 1);
}

std::vector<OpDef> recurrent_ops() {
  return {
      define("RNN",
             "projections: T, recurrent_kernel: T, bias: T, initial_h: T, initial_c: U, mask?: T, "
             "taken?: bool -> output: T, last_c: U, gates: T, carries: U, states: T",
             fmt::format("{}{}", k_types, k_attrs),
             {.infer = infer_rnn, .gradient = gradient_rnn}),
      define("RNNGrad",
             "dy: T, dlast_c: U, recurrent_kernel: T, initial_h: T, initial_c: U, output: T, "
             "gates: T, carries: U, mask?: T, taken?: bool -> dprojections: T, drecurrent: T, "
             "dinitial_h: T, dinitial_c: U",
             fmt::format("{}{}", k_types, k_attrs),
             {.infer = infer_rnn_grad}),
  };
}

}  // namespace halfstep::graph::ops

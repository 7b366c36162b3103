// The results of each op, on examples small enough to check by hand.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <string_view>

#include "backend/backend.h"
#include "core/error.h"
#include "fixture.h"
#include "graph/ops/ops.h"
#include "support/evaluate.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr double k_inf = std::numeric_limits<double>::infinity();

/// An input: values in float64, or a constant when `constant` says so.
struct In {
  Shape shape;
  std::vector<double> values;
  DType dtype = DType::float64;
  bool constant = false;
};

In vec(std::vector<double> values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return {shape, std::move(values)};
}
In mat(std::int64_t rows, std::vector<double> values) {
  const std::int64_t columns = static_cast<std::int64_t>(values.size()) / rows;
  return {{rows, columns}, std::move(values)};
}
In num(double value) { return {{}, {value}}; }
In idx(std::vector<double> values, DType dtype = DType::int32) {
  In in = vec(std::move(values));
  in.dtype = dtype;
  return in;
}
In yes_no(std::vector<double> values) { return idx(std::move(values), DType::boolean); }
In con(std::vector<double> values) {
  In in = idx(std::move(values));
  in.constant = true;
  return in;
}

struct Example {
  std::string_view op;
  std::vector<In> inputs;
  std::vector<double> want;  ///< of output 0
  graph::Attrs attrs{};
  int port = 0;
};

/// The named output in float64.
std::vector<double> result_of(const Example& e) {
  graph::Graph graph;
  graph::Builder b(graph, graph::op_table());
  Tensors feeds;
  std::vector<graph::Value> inputs;
  for (std::size_t i = 0; i < e.inputs.size(); ++i) {
    const In& in = e.inputs[i];
    if (in.constant) {
      inputs.push_back(b.ints(Ints(in.values.begin(), in.values.end())));
      continue;
    }
    const std::string name = fmt::format("x{}", i);
    Tensor wide(DType::float64, in.shape);
    std::copy(in.values.begin(), in.values.end(), wide.as<double>());
    Tensor tensor(in.dtype, in.shape);
    convert(wide.view(), tensor.view());
    inputs.push_back(b.placeholder(name, in.dtype, in.shape));
    feeds[name] = std::move(tensor);
  }
  const graph::Value y{b.add_node(e.op, inputs, e.attrs), e.port};
  Tensors variables;
  const std::vector<Tensor> got =
      evaluate(graph, backend::cpu_reference(), std::vector{y}, feeds, variables);
  Tensor wide(DType::float64, got[0].shape());
  convert(got[0].view(), wide.view());
  return {wide.as<double>(), wide.as<double>() + wide.elements()};
}

void check_examples(const std::vector<Example>& examples) {
  for (const Example& e : examples) {
    CAPTURE(e.op);
    const std::vector<double> got = result_of(e);
    REQUIRE(got.size() == e.want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CAPTURE(i);
      CAPTURE(got[i]);
      CAPTURE(e.want[i]);
      const bool both_nan = std::isnan(got[i]) && std::isnan(e.want[i]);
      const double allowed = tolerance(DType::float64, DType::float64, 4, std::abs(e.want[i]));
      CHECK((both_nan || got[i] == e.want[i] || std::abs(got[i] - e.want[i]) <= allowed));
    }
  }
}

const double k_e = std::exp(1.0);
const double k_sqrt2 = std::sqrt(2.0);

}  // namespace

TEST_CASE("unary: known values") {
  check_examples({
      {"Abs", {vec({-2, 0, 3, -k_inf, k_nan})}, {2, 0, 3, k_inf, k_nan}},
      {"Neg", {vec({-2, 3, k_inf})}, {2, -3, -k_inf}},
      {"Sign", {vec({-2, 0, 3, k_nan})}, {-1, 0, 1, k_nan}},
      {"Ceil", {vec({-1.5, 0.25, 2})}, {-1, 1, 2}},
      {"Floor", {vec({-1.5, 0.25, 2})}, {-2, 0, 2}},
      {"Round", {vec({-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.6})}, {-2, -2, 0, 0, 2, 2, 3}},
      {"Exp", {vec({0, 1, -k_inf})}, {1, k_e, 0}},
      {"Expm1", {vec({0, 1, 1e-20})}, {0, k_e - 1, 1e-20}},
      {"Log", {vec({1, k_e, 0, -1})}, {0, 1, -k_inf, k_nan}},
      {"Log1p", {vec({0, k_e - 1, 1e-20})}, {0, 1, 1e-20}},
      {"Sqrt", {vec({4, 2, -1})}, {2, k_sqrt2, k_nan}},
      {"Rsqrt", {vec({4, 0.25, 0})}, {0.5, 2, k_inf}},
      {"Reciprocal", {vec({4, -0.5, 0})}, {0.25, -2, k_inf}},
      {"Square", {vec({-3, 0.5})}, {9, 0.25}},
      {"Erf", {vec({0, 0.5, k_inf})}, {0, 0.5204998778130465, 1}},
      {"Erfc", {vec({0, 0.5, k_inf})}, {1, 0.4795001221869535, 0}},
      {"Erfinv",
       {vec({-1, -0.5, 0, 0.5204998778130465, 1, 1.5})},
       {-k_inf, -0.4769362762044699, 0, 0.5, k_inf, k_nan}},
      {"SqrtGrad", {vec({2, 4}), vec({3, 8})}, {0.75, 1}},
      {"RsqrtGrad", {vec({2, 0.5}), vec({3, 8})}, {-12, -0.5}},
      {"ReciprocalGrad", {vec({2, 0.5}), vec({3, 8})}, {-12, -2}},
      {"IsFinite", {vec({1, k_inf, k_nan})}, {1, 0, 0}},
      {"IsInf", {vec({1, -k_inf, k_nan})}, {0, 1, 0}},
      {"IsNan", {vec({1, k_inf, k_nan})}, {0, 0, 1}},
      {"LogicalNot", {yes_no({0, 1})}, {1, 0}},
      {"OnesLike", {vec({k_nan, 2})}, {1, 1}},
      {"ZerosLike", {vec({k_nan, 2})}, {0, 0}},
  });
}

TEST_CASE("activation: known values") {
  constexpr double k_scale = 1.0507009873554805;
  constexpr double k_alpha = 1.6732632423543772;
  check_examples({
      {"Relu", {vec({-1, 0, 2, k_inf, -k_inf, k_nan})}, {0, 0, 2, k_inf, 0, k_nan}},
      {"Relu6", {vec({-1, 2, 6, 7, k_nan})}, {0, 2, 6, 6, k_nan}},
      {"LeakyRelu", {vec({-2, 3, k_nan})}, {-0.4, 3, k_nan}},
      {"LeakyRelu", {vec({-2, 3})}, {-1, 3}, {{"alpha", 0.5}}},
      {"Elu", {vec({-1, 2, -k_inf})}, {1 / k_e - 1, 2, -1}},
      {"Selu", {vec({-1, 2})}, {k_scale * k_alpha * (1 / k_e - 1), 2 * k_scale}},
      {"Softplus", {vec({0, 800, -800})}, {std::log(2.0), 800, 0}},
      {"Softsign", {vec({-1, 3})}, {-0.5, 0.75}},
      {"Gelu",
       {vec({0, 1, -1, 40, -40, 1e30})},
       {0, 0.8413447460685429, -0.15865525393145707, 40, 0, 1e30}},
      {"GeluApproximate",
       {vec({0, 1, -1, 40, -40, 1e30})},
       {0, 0.8411919906082768, -0.15880800939172324, 40, 0, 1e30}},
      {"GeluGrad",
       {vec({2, 1, 3, 3, 3}), vec({0, 1, 40, -40, 1e30})},
       {1, 1.0833154705876864, 3, 0, 3}},
      {"GeluApproximateGrad",
       {vec({2, 1, 3, 3, 3}), vec({0, 1, 40, -40, 1e30})},
       {1, 1.0829640838457826, 3, 0, 3}},
      {"Sigmoid", {vec({0, std::log(3.0), -800, 800})}, {0.5, 0.75, 0, 1}},
      {"Tanh", {vec({0, std::log(2.0), k_inf})}, {0, 0.6, 1}},
      {"ReluGrad", {vec({5, 5, 5}), vec({-1, 0, 2})}, {0, 0, 5}},
      {"Relu6Grad", {vec({5, 5, 5, 5}), vec({-1, 2, 6, 7})}, {0, 5, 0, 0}},
      {"LeakyReluGrad", {vec({5, 5}), vec({-1, 2})}, {1, 5}},
      {"EluGrad", {vec({4, 4}), vec({-0.5, 2})}, {2, 4}},
      {"SeluGrad", {vec({2, 2}), vec({-0.5, 2})}, {2 * (k_scale * k_alpha - 0.5), 2 * k_scale}},
      {"SoftplusGrad", {vec({4, 4}), vec({0, std::log(3.0)})}, {2, 3}},
      {"SoftsignGrad", {vec({4, 4}), vec({-1, 3})}, {1, 0.25}},
      {"SigmoidGrad", {vec({0.5, 0.75}), vec({4, 16})}, {1, 3}},
      {"TanhGrad", {vec({0, 0.6}), vec({4, 25})}, {4, 16}},
  });
}

TEST_CASE("binary: known values and broadcasting") {
  const In column = mat(2, {10, 20});
  check_examples({
      {"AddV2", {column, vec({1, 2, 3})}, {11, 12, 13, 21, 22, 23}},
      {"Add", {num(1), vec({1, 2})}, {2, 3}},
      {"AddN", {vec({1, 2}), vec({3, 4}), vec({5, 6})}, {9, 12}},
      {"Sub", {vec({1, 2, 3}), column}, {-9, -8, -7, -19, -18, -17}},
      {"Mul", {column, vec({1, 2})}, {10, 20, 20, 40}},
      {"RealDiv", {vec({1, -1, 0}), num(0)}, {k_inf, -k_inf, k_nan}},
      {"DivNoNan", {vec({1, 6}), vec({0, 4})}, {0, 1.5}},
      {"FloorDiv", {vec({7, -7, 7, -7}), vec({2, 2, -2, -2})}, {3, -4, -4, 3}},
      {"FloorDiv", {idx({7, -7, 7, -7, 6, 1}), idx({2, 2, -2, -2, -2, 0})}, {3, -4, -4, 3, -3, 0}},
      {"RealDiv", {idx({7, -7, 1}), idx({2, 2, 0})}, {3, -3, 0}},
      {"Maximum", {vec({1, 5, k_nan, 1}), vec({3, 2, 1, k_nan})}, {3, 5, k_nan, k_nan}},
      {"Minimum", {vec({1, 5, k_nan, 1}), vec({3, 2, 1, k_nan})}, {1, 2, k_nan, k_nan}},
      {"Pow", {vec({2, 9, -2}), vec({10, 0.5, 3})}, {1024, 3, -8}},
      {"Pow", {idx({2, -3, 1, 5}), idx({10, 3, -2, 0})}, {1024, -27, 1, 1}},
      {"SquaredDifference", {vec({1, 5}), vec({4, 3})}, {9, 4}},
      {"Equal", {vec({1, 2, k_nan}), vec({1, 3, k_nan})}, {1, 0, 0}},
      {"NotEqual", {vec({1, 2, k_nan}), vec({1, 3, k_nan})}, {0, 1, 1}},
      {"Less", {vec({1, 2, 3}), num(2)}, {1, 0, 0}},
      {"LessEqual", {vec({1, 2, 3}), num(2)}, {1, 1, 0}},
      {"Greater", {vec({1, 2, 3}), num(2)}, {0, 0, 1}},
      {"GreaterEqual", {vec({1, 2, 3}), num(2)}, {0, 1, 1}},
      {"LogicalAnd", {yes_no({0, 0, 1, 1}), yes_no({0, 1, 0, 1})}, {0, 0, 0, 1}},
      {"LogicalOr", {yes_no({0, 0, 1, 1}), yes_no({0, 1, 0, 1})}, {0, 1, 1, 1}},
      {"Select", {yes_no({1, 0}), mat(2, {1, 2, 3, 4}), mat(2, {5, 6, 7, 8})}, {1, 2, 7, 8}},
      {"SelectV2", {yes_no({1, 0}), mat(2, {1, 2, 3, 4}), num(9)}, {1, 9, 3, 9}},
      {"ClipByValue", {vec({-3, 0.5, 3, k_nan}), num(-1), num(2)}, {-1, 0.5, 2, k_nan}},
  });
}

TEST_CASE("softmax: known values") {
  const double l3 = std::log(3.0);
  const In logits = mat(2, {0, l3, 0, 0});
  check_examples({
      {"Softmax", {logits}, {0.25, 0.75, 0.5, 0.5}},
      {"Softmax", {mat(1, {1000, 1000})}, {0.5, 0.5}},
      {"Softmax", {mat(1, {0, k_inf})}, {k_nan, k_nan}},
      {"LogSoftmax", {logits}, {-std::log(4.0), std::log(0.75), -std::log(2.0), -std::log(2.0)}},
      {"SoftmaxCrossEntropyWithLogits",
       {logits, mat(2, {0, 1, 0.5, 0.5})},
       {-std::log(0.75), std::log(2.0)}},
      {"SoftmaxCrossEntropyWithLogits",
       {logits, mat(2, {0, 1, 0.5, 0.5})},
       {0.25, -0.25, 0, 0},
       {},
       1},
      {"SoftmaxCrossEntropyWithLogits", {mat(1, {0, -k_inf}), mat(1, {1, 0})}, {0}},
      {"SparseSoftmaxCrossEntropyWithLogits",
       {logits, idx({0, 1})},
       {std::log(4.0), std::log(2.0)}},
      {"SparseSoftmaxCrossEntropyWithLogits",
       {logits, idx({0, 1})},
       {-0.75, 0.75, 0.5, -0.5},
       {},
       1},
      {"SparseSoftmaxCrossEntropyWithLogits", {logits, idx({2, -1})}, {k_nan, k_nan}},
      {"SparseSoftmaxCrossEntropyWithLogits",
       {logits, idx({2, 0})},
       {k_nan, k_nan, -0.5, 0.5},
       {},
       1},
  });
}

TEST_CASE("reduce: known values") {
  const In x = mat(2, {1, 2, 3, 4, 5, 6});
  check_examples({
      {"Sum", {x, con({0})}, {5, 7, 9}},
      {"Sum", {x, con({-1})}, {6, 15}},
      {"Sum", {x, con({0, 1})}, {21}},
      {"Sum", {x, con({})}, {1, 2, 3, 4, 5, 6}},
      {"Mean", {x, con({1})}, {2, 5}},
      {"Prod", {x, con({0})}, {4, 10, 18}},
      {"Max", {mat(2, {1, 7, 3, 4, k_nan, 6}), con({1})}, {7, k_nan}},
      {"Min", {mat(2, {1, 7, 3, k_nan, 5, 6}), con({1})}, {1, k_nan}},
      {"All", {yes_no({1, 0, 1}), con({0})}, {0}},
      {"Any", {yes_no({1, 0, 1}), con({0})}, {1}},
      {"ArgMax", {mat(2, {1, 3, 3, 6, 5, 4}), con({1})}, {1, 0}},
      {"ArgMin", {mat(2, {3, 1, 1, 6, 5, 4}), con({1})}, {1, 2}},
      {"L2Loss", {x}, {45.5}},
  });
  In scores = mat(3, {3, 1, 2, 3, 1, 2, 2, 2, 2});
  scores.dtype = DType::float32;
  const In two{{}, {2}, DType::int32};
  check_examples({{"InTopKV2", {scores, idx({2, 1, 0}), two}, {1, 0, 1}},
                  {"InTopKV2", {scores, idx({3, -1, 0}), two}, {0, 0, 1}}});
}

TEST_CASE("array: known values") {
  const In x = mat(2, {1, 2, 3, 4, 5, 6});
  check_examples({
      {"Reshape", {x, con({3, -1})}, {1, 2, 3, 4, 5, 6}},
      {"Transpose", {x, con({1, 0})}, {1, 4, 2, 5, 3, 6}},
      {"ConcatV2", {x, mat(2, {7, 8}), con({1})}, {1, 2, 3, 7, 4, 5, 6, 8}},
      {"ConcatV2", {x, mat(1, {7, 8, 9}), con({0})}, {1, 2, 3, 4, 5, 6, 7, 8, 9}},
      {"Slice", {x, con({0, 1}), con({2, -1})}, {2, 3, 5, 6}},
      {"Split", {con({1}), mat(2, {1, 2, 3, 4})}, {2, 4}, {{"num_split", std::int64_t{2}}}, 1},
      {"Pad", {x, con({1, 0, 0, 1})}, {0, 0, 0, 0, 1, 2, 3, 0, 4, 5, 6, 0}},
      {"PadV2", {vec({1, 2}), con({1, 2}), num(7)}, {7, 1, 2, 7, 7}},
      {"BroadcastTo", {mat(2, {1, 2}), con({2, 3})}, {1, 1, 1, 2, 2, 2}},
      {"Tile", {mat(2, {1, 2, 3, 4}), con({1, 2})}, {1, 2, 1, 2, 3, 4, 3, 4}},
      {"Tile", {vec({1, 2}), con({3})}, {1, 2, 1, 2, 1, 2}},
      {"ReverseV2", {x, con({1})}, {3, 2, 1, 6, 5, 4}},
      {"ReverseV2", {x, con({0})}, {4, 5, 6, 1, 2, 3}},
      {"OneHot", {idx({1, 0, 5}), con({2}), num(9), num(-1)}, {-1, 9, 9, -1, -1, -1}},
      {"OneHot",
       {idx({1, 0, 1}), con({2}), num(1), num(0)},
       {0, 1, 0, 1, 0, 1},
       {{"axis", std::int64_t{0}}}},
      {"GatherV2", {x, idx({1, 0, 1}), con({0})}, {4, 5, 6, 1, 2, 3, 4, 5, 6}},
      {"GatherV2", {x, idx({2, 0}), con({1})}, {3, 1, 6, 4}},
      {"GatherV2", {x, idx({2}), con({0})}, {0, 0, 0}},
      {"UnsortedSegmentSum",
       {mat(3, {1, 2, 3, 4, 5, 6}), idx({2, 0, 2}), con({3})},
       {3, 4, 0, 0, 6, 8}},
      {"Shape", {x}, {2, 3}},
      {"Fill", {con({2, 2}), num(3)}, {3, 3, 3, 3}},
      {"ExpandDims", {vec({1, 2}), con({0})}, {1, 2}},
      {"Squeeze", {mat(1, {1, 2})}, {1, 2}},
      {"StopGradient", {vec({1, 2})}, {1, 2}},
      {"PreventGradient", {vec({1, 2})}, {1, 2}},
  });
}

TEST_CASE("matmul: known values") {
  const In a = mat(2, {1, 2, 3, 4, 5, 6});
  const In b = mat(3, {1, 2, 3, 4, 5, 6});
  check_examples({
      {"MatMul", {a, b}, {22, 28, 49, 64}},
      {"MatMul", {b, b}, {35, 44, 44, 56}, {{"transpose_a", true}}},
      {"MatMul", {a, a}, {14, 32, 32, 77}, {{"transpose_b", true}}},
      {"MatMul",
       {a, b},
       {9, 19, 29, 12, 26, 40, 15, 33, 51},
       {{"transpose_a", true}, {"transpose_b", true}}},
      {"BatchMatMulV2", {{{2, 1, 2}, {1, 2, 3, 4}}, {{2, 2, 1}, {5, 6, 7, 8}}}, {17, 53}},
      {"BatchMatMulV2", {{{2, 1, 2}, {1, 2, 3, 4}}, {{2, 1}, {5, 6}}}, {17, 39}},
      {"BiasAdd", {a, vec({10, 20, 30})}, {11, 22, 33, 14, 25, 36}},
      {"BiasAddGrad", {a}, {5, 7, 9}},
  });
}

TEST_CASE("array and matmul: shapes that do not fit are the user's to mend") {
  const In x = mat(2, {1, 2, 3, 4, 5, 6});
  const std::vector<Example> wrong{
      {"MatMul", {x, x}, {}},
      {"BatchMatMulV2", {x, vec({1, 2, 3})}, {}},
      {"BiasAdd", {x, vec({1, 2})}, {}},
      {"Reshape", {x, con({4, 2})}, {}},
      {"Reshape", {x, con({-1, -1})}, {}},
      {"Reshape", {x, con({-1, 4})}, {}},
      {"Transpose", {x, con({0, 0})}, {}},
      {"Transpose", {x, con({0, 2})}, {}},
      {"ConcatV2", {x, vec({1}), con({0})}, {}},
      {"Slice", {x, con({0, 2}), con({1, 2})}, {}},
      {"Pad", {x, con({0, -1, 0, 0})}, {}},
      {"AddV2", {x, vec({1, 2})}, {}},
      {"AddN", {x, vec({1, 2, 3})}, {}},
      {"Sum", {x, con({2})}, {}},
      {"Squeeze", {x}, {}, {{"squeeze_dims", Ints{0}}}},
      {"Split", {con({1}), x}, {}, {{"num_split", std::int64_t{2}}}},
      {"SparseSoftmaxCrossEntropyWithLogits", {x, idx({0, 1, 2})}, {}},
      {"Softmax", {num(1)}, {}},
  };
  for (const Example& e : wrong) {
    CAPTURE(e.op);
    CHECK_THROWS_AS(result_of(e), UserError);
  }
}

}  // namespace halfstep::testing

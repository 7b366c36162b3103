// Which ops the gradient rules emit: users are shown them by name, and the rewrite paints them.

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/ops/ops.h"

namespace halfstep::graph {
namespace {

struct In {
  Shape shape;
  DType dtype = DType::float32;
  std::vector<std::int64_t> ints{};  ///< a Const when given
};

In ints(std::vector<std::int64_t> values) { return {{}, DType::int32, std::move(values)}; }

struct Rule {
  std::string_view op;
  std::vector<In> inputs;
  std::string_view want;  ///< ops in the order in which they are added, without constants
  Attrs attrs{};
};

/// The ops that the gradient rule adds, with the gradients' types checked against the inputs'.
std::string emitted(const Rule& rule) {
  Graph graph;
  Builder b(graph, op_table());
  std::vector<Value> inputs;
  for (const In& in : rule.inputs) {
    inputs.push_back(in.ints.empty() ? b.placeholder("x", in.dtype, in.shape) : b.ints(in.ints));
  }
  const int id = b.add_node(rule.op, inputs, rule.attrs);
  const Node& node = graph.node(id);
  std::vector<Value> dy;
  for (const TensorType& type : node.outputs) {
    dy.push_back(b.placeholder("dy", type.dtype, type.shape));
  }
  const int before = graph.size();
  const std::vector<Value> dx = node.def->gradient({b, node, id, dy});
  verify(graph, "gradient");
  REQUIRE(dx.size() == inputs.size());
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (dx[i].valid()) CHECK(b.type(dx[i]) == b.type(inputs[i]));
  }
  std::string ops;
  for (int i = before; i < graph.size(); ++i) {
    if (graph.node(i).op == "Const") continue;
    ops += (ops.empty() ? "" : " ") + graph.node(i).op;
  }
  return ops;
}

}  // namespace

TEST_CASE("gradient rules: the ops they emit are TensorFlow's") {
  const In x{{2, 3}};
  const Rule k_rules[] = {
      {"Abs", {x}, "Sign Mul"},
      {"Exp", {x}, "Mul"},
      {"Log", {x}, "Reciprocal Mul"},
      {"Sqrt", {x}, "SqrtGrad"},
      {"Rsqrt", {x}, "RsqrtGrad"},
      {"Reciprocal", {x}, "ReciprocalGrad"},
      {"Square", {x}, "Mul Mul"},
      {"Erf", {x}, "Square Neg Exp Mul Mul"},
      {"Erfinv", {x}, "Square Exp Mul Mul"},
      {"Round", {x}, ""},
      {"Relu", {x}, "ReluGrad"},
      {"Relu6", {x}, "Relu6Grad"},
      {"LeakyRelu", {x}, "LeakyReluGrad"},
      {"Elu", {x}, "EluGrad"},
      {"Selu", {x}, "SeluGrad"},
      {"Gelu", {x}, "GeluGrad"},
      {"GeluApproximate", {x}, "GeluApproximateGrad"},
      {"Softplus", {x}, "SoftplusGrad"},
      {"Softsign", {x}, "SoftsignGrad"},
      {"Sigmoid", {x}, "SigmoidGrad"},
      {"Tanh", {x}, "TanhGrad"},
      {"AddV2", {x, x}, ""},
      {"AddV2", {x, {{3}}}, "Sum"},
      {"AddV2", {x, {{2, 1}}}, "Sum Reshape"},
      {"AddV2", {{{}}, x}, "Sum"},
      {"Sub", {x, x}, "Neg"},
      {"Mul", {x, x}, "Mul Mul"},
      {"Mul", {x, {{3}}}, "Mul Mul Sum"},
      {"RealDiv", {x, x}, "RealDiv Neg RealDiv RealDiv Mul"},
      {"Maximum", {x, x}, "GreaterEqual SelectV2 SelectV2"},
      {"Minimum", {x, x}, "LessEqual SelectV2 SelectV2"},
      {"SquaredDifference", {x, x}, "Sub Mul Mul Neg"},
      {"AddN", {x, x, x}, ""},
      {"SelectV2", {{{2, 3}, DType::boolean}, x, x}, "SelectV2 SelectV2"},
      {"Softmax", {x}, "Mul Sum Sub Mul"},
      {"LogSoftmax", {x}, "Exp Sum Mul Sub"},
      {"SparseSoftmaxCrossEntropyWithLogits", {x, {{2}, DType::int32}}, "ExpandDims Mul"},
      {"SoftmaxCrossEntropyWithLogits", {x, x}, "ExpandDims Mul LogSoftmax Neg ExpandDims Mul"},
      {"Sum", {x, ints({0, 1})}, "Reshape Tile"},
      {"Sum", {x, ints({1})}, "Reshape BroadcastTo"},
      {"Sum", {x, ints({1})}, "BroadcastTo", {{"keep_dims", true}}},
      {"Mean", {x, ints({0, 1})}, "Reshape Tile RealDiv"},
      {"Mean", {x, ints({0})}, "Reshape BroadcastTo RealDiv"},
      {"Max", {x, ints({1})}, "Reshape Reshape Equal Cast Sum Reshape RealDiv Mul"},
      {"L2Loss", {x}, "Mul"},
      {"MatMul", {x, {{3, 4}}}, "MatMul MatMul"},
      {"BatchMatMulV2", {{{5, 2, 3}}, {{3, 4}}}, "BatchMatMulV2 BatchMatMulV2 Sum"},
      {"BiasAdd", {x, {{3}}}, "BiasAddGrad"},
      {"Reshape", {x, ints({6})}, "Reshape"},
      {"Transpose", {x, ints({1, 0})}, "Transpose"},
      {"ConcatV2", {x, x, ints({1})}, "Slice Slice"},
      {"Slice", {x, ints({0, 1}), ints({2, 1})}, "Pad"},
      {"Split", {ints({0}), x}, "ConcatV2", {{"num_split", std::int64_t{2}}}},
      {"Pad", {x, ints({1, 0, 0, 1})}, "Slice"},
      {"BroadcastTo", {x, ints({4, 2, 3})}, "Sum"},
      {"Tile", {x, ints({2, 1})}, "Reshape Sum"},
      {"ReverseV2", {x, ints({1})}, "ReverseV2"},
      {"GatherV2", {x, {{4}, DType::int32}, ints({0})}, "UnsortedSegmentSum"},
      {"StopGradient", {x}, ""},
  };
  for (const Rule& rule : k_rules) {
    CAPTURE(rule.op);
    CHECK(emitted(rule) == rule.want);
  }
}

TEST_CASE("gradient rules: a mean over more elements than float16 can count divides in steps") {
  const In many{{2, 400, 400}, DType::float16};
  CHECK(emitted({"Mean", {many, ints({1, 2})}, "Reshape BroadcastTo RealDiv RealDiv"}) ==
        "Reshape BroadcastTo RealDiv RealDiv");
}

TEST_CASE("gradient rules: PreventGradient refuses") {
  CHECK_THROWS_AS(emitted({"PreventGradient", {{{2}}}, ""}), InternalError);
}

TEST_CASE("ops: reduce, reshape, unbroadcast and accumulate add no node that does nothing") {
  Graph graph;
  Builder b(graph, op_table());
  const Value x = b.placeholder("x", DType::float32, {2, 3});
  const int before = graph.size();
  CHECK(ops::reshape(b, x, {2, 3}) == x);
  CHECK(ops::unbroadcast(b, x, {2, 3}) == x);
  CHECK(ops::accumulate(b, {x}) == x);
  CHECK(graph.size() == before);
  CHECK(b.shape(ops::reduce(b, "Sum", x)) == Shape{});
  CHECK(b.shape(ops::reduce(b, "Sum", x, std::vector<std::int64_t>{-1}, true)) == Shape{2, 1});
  CHECK(b.shape(ops::unbroadcast(b, x, {})) == Shape{});
  CHECK(graph.node(ops::accumulate(b, {x, x}).node).op == "AddV2");
  CHECK(graph.node(ops::accumulate(b, {x, x, x}).node).op == "AddN");
}

}  // namespace halfstep::graph

#include "random_graph.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <random>

#include "graph/ops/ops.h"
#include "graph/ports.h"

namespace halfstep::precision {
namespace {

using graph::Node;
using graph::Value;

constexpr std::array<std::string_view, 6> k_allow{
    "MatMul", "Conv2D", "Conv2DBackpropInput", "Einsum", "BatchMatMulV2", "LSTMBlockCell"};
constexpr std::array<std::string_view, 14> k_infer{"AddV2",
                                                   "AddN",
                                                   "BiasAdd",
                                                   "Mul",
                                                   "Tanh",
                                                   "FusedBatchNormV3",
                                                   "FusedBatchNorm",
                                                   "FusedBatchNormGradV3",
                                                   "Softmax",
                                                   "Sqrt",
                                                   "AvgPool",
                                                   "Rsqrt",
                                                   "LeakyRelu",
                                                   "Square"};
constexpr std::array<std::string_view, 6> k_deny{
    "Exp", "Sum", "Mean", "Pow", "L2Loss", "SparseSoftmaxCrossEntropyWithLogits"};
constexpr std::array<std::string_view, 22> k_clear{"Relu",
                                                   "ReluGrad",
                                                   "Identity",
                                                   "IdentityN",
                                                   "Reshape",
                                                   "ConcatV2",
                                                   "Split",
                                                   "Greater",
                                                   "SelectV2",
                                                   "MaxPool",
                                                   "MaxPoolGrad",
                                                   "Transpose",
                                                   "GatherV2",
                                                   "Shape",
                                                   "TopKV2",
                                                   "Pad",
                                                   "TensorListPushBack",
                                                   "TensorListPopBack",
                                                   "TensorListSetItem",
                                                   "TensorListStack",
                                                   "Switch",
                                                   "Fill"};
constexpr std::array<std::string_view, 8> k_other{"Cast",
                                                  "Cumsum",
                                                  "RandomUniform",
                                                  "SparseMatMul",
                                                  "TensorListResize",
                                                  "ResourceGather",
                                                  "LogicalAnd",
                                                  "ResourceApplyGradientDescent"};

class Maker {
 public:
  Maker(std::uint32_t seed, std::string_view prefix) : random_(seed), prefix_(prefix) {}

  graph::ParsedGraph run() {
    const int steps = 4 + pick(40);
    for (int i = 0; i < steps; ++i) {
      const int kind = pick(100);
      if (kind < 22) {
        make(one_of(k_allow));
      } else if (kind < 48) {
        make(one_of(k_infer));
      } else if (kind < 58) {
        make(one_of(k_deny));
      } else if (kind < 86) {
        make(one_of(k_clear));
      } else if (kind < 94) {
        make(one_of(k_other));
      } else {
        loop();
      }
    }
    for (int id = 0; id < parsed_.graph.size(); ++id) {
      if (pick(25) == 0) parsed_.graph.node(id).preserve = true;
      if (pick(15) == 0) parsed_.graph.node(id).device = pick(2) == 0 ? "CPU:0" : "/device:GPU:1";
    }
    for (std::string_view op : {"Tanh", "Relu", "Mul"}) {
      if (pick(8) == 0) parsed_.no_kernel.emplace(op, DType::float16);
      if (pick(8) == 0) parsed_.no_kernel.emplace(op, DType::bfloat16);
    }
    return std::move(parsed_);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <std::size_t N>
  std::string_view one_of(const std::array<std::string_view, N>& ops) {
    return ops[random_() % N];
  }

  int add(std::string_view op, std::vector<Value> inputs, graph::Attrs attrs) {
    Node node;
    node.name = fmt::format("{}{}", prefix_, parsed_.graph.size());
    node.op = op;
    node.def = graph::op_table().find(op);
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    const std::vector<graph::PortType> outputs = graph::output_port_types(*node.def, node.attrs);
    for (const graph::PortType& port : outputs) {
      node.outputs.push_back({*graph::dtype_of(port, node.attrs), Shape{}});
    }
    const int id = parsed_.graph.add(std::move(node));
    for (std::size_t port = 0; port < outputs.size(); ++port) {
      const Value value{id, static_cast<int>(port)};
      values_[parsed_.graph.type(value).dtype].push_back(value);
    }
    return id;
  }

  DType some_dtype(const DTypeSet& allowed) {
    if (allowed.contains(DType::float32) && pick(100) < 92) return DType::float32;
    static constexpr std::array k_some{DType::int32,
                                       DType::float64,
                                       DType::float16,
                                       DType::bfloat16,
                                       DType::boolean,
                                       DType::int64};
    for (int i = 0; i < 20; ++i) {
      const DType dtype = k_some[random_() % k_some.size()];
      if (allowed.contains(dtype)) return dtype;
    }
    for (DType dtype : all_dtypes()) {
      if (allowed.contains(dtype)) return dtype;
    }
    return DType::float32;
  }

  /// A value of a dtype, mostly a recent one.
  Value value(DType dtype) {
    const std::vector<Value>& known = values_[dtype];
    if (!known.empty() && pick(100) < 85) {
      const std::size_t last = std::min<std::size_t>(known.size(), 1 + random_() % 8);
      return known[known.size() - 1 - random_() % last];
    }
    if (dtype == DType::variant) return {make("EmptyTensorList"), 0};
    if (dtype == DType::resource) return {add("VarHandleOp", {}, {{"dtype", DType::float32}}), 0};
    return {add(pick(3) == 0 ? "VariableV2" : "Const", {}, {{"dtype", dtype}}), 0};
  }

  int make(std::string_view op) {
    const graph::OpDef& def = *graph::op_table().find(op);
    graph::Attrs attrs;
    for (const graph::TypeAttr& type : def.types) {
      if (type.is_list) {
        std::vector<DType> list(static_cast<std::size_t>(1 + pick(3)));
        for (DType& dtype : list) dtype = some_dtype(type.allowed);
        attrs.set(type.name, std::move(list));
      } else {
        attrs.set(type.name, some_dtype(type.allowed));
      }
    }
    for (const graph::AttrDef& attr : def.attrs) {
      if (attr.name == "N" || attr.name == "num_split") {
        attrs.set(attr.name, std::int64_t{1} + pick(3));
      }
    }
    std::vector<Value> inputs;
    for (const graph::PortType& port : graph::input_port_types(def, attrs)) {
      inputs.push_back(value(*graph::dtype_of(port, attrs)));
    }
    return add(op, std::move(inputs), std::move(attrs));
  }

  void loop() {
    const graph::Attrs typed{{"T", DType::float32}};
    const graph::Attrs two{{"T", DType::float32}, {"N", std::int64_t{2}}};
    const int enter = add("Enter", {value(DType::float32)}, typed);
    const int merge = add("Merge", {{enter, 0}, {enter, 0}}, two);
    const int body = pick(5);
    for (int i = 0; i < body; ++i) make(pick(2) == 0 ? one_of(k_infer) : one_of(k_allow));
    const int next = add("NextIteration", {value(DType::float32)}, typed);
    values_[DType::float32].pop_back();  // only Merge may read it
    parsed_.graph.node(merge).inputs[1] = {next, 0};
    if (pick(3) == 0) add("Merge", {{enter, 0}, {next, 0}}, two);
    add("Exit", {{merge, 0}}, typed);
  }

  std::mt19937 random_;
  std::string prefix_;
  graph::ParsedGraph parsed_;
  std::map<DType, std::vector<Value>> values_;
};

}  // namespace

graph::ParsedGraph random_graph(std::uint32_t seed, std::string_view prefix) {
  return Maker(seed, prefix).run();
}

}  // namespace halfstep::precision

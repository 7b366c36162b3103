#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "graph/op_handles.h"
#include "passes/rewriter.h"

namespace halfstep::passes {

using graph::Node;

namespace {

constexpr graph::OpHandle k_learning_rate{"LearningRate"};

}  // namespace

graph::Graph merge_scalars(const graph::Graph& graph, const Target& /*target*/) {
  Rewriter rewriter(graph);
  graph::Value rate;
  rewriter.apply(op(k_learning_rate).as(rate), [&]() -> Replacement {
    const graph::Attrs& attrs = rewriter.node(rate).attrs;
    if (attrs.get<std::string>("kind") != "constant" ||
        attrs.get<std::int64_t>("warmup_steps") > 0) {
      return {};
    }
    NewNode constant{.op = "Const", .inputs = {}, .results = {{rate}}};
    constant.attrs = {{"dtype", DType::float32},
                      {"shape", Shape{}},
                      {"value", std::vector<double>{attrs.get<double>("base")}}};
    return {std::move(constant)};
  });
  std::map<std::string, std::vector<int>, std::less<>> seen;  // by op
  for (int id = 0; id < graph.size(); ++id) {
    // Its inputs are merged already, so that equal ones are the same.
    const Node& node = rewriter.graph().node(id);
    const bool number = node.outputs.size() == 1 && node.outputs[0].shape.elements() == 1;
    if (!number || node.def->stateful || node.is(graph::ops::k_placeholder) || node.preserve ||
        rewriter.has_control_edge(id)) {
      continue;
    }
    std::vector<int>& others = seen[node.op];
    const auto same = std::find_if(others.begin(), others.end(), [&](int other) {
      const Node& first = rewriter.graph().node(other);
      return first.inputs == node.inputs && first.attrs == node.attrs &&
             first.outputs == node.outputs && first.origin.phase == node.origin.phase;
    });
    if (same == others.end()) {
      others.push_back(id);
    } else {
      rewriter.replace({id, 0}, {*same, 0});
    }
  }
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes

#include "passes/rewriter.h"

namespace halfstep::passes {

graph::Graph fuse_casts_into_sums(const graph::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target.supports);
  graph::Value x, wide, sums;
  const Pattern cast = op(graph::ops::k_cast, {any(x)}).as(wide).used_once();
  rewriter.apply(op(graph::ops::k_bias_add_grad, {cast}).as(sums), [&]() -> Replacement {
    if (!is_half(rewriter.type(x).dtype) || rewriter.type(wide).dtype != DType::float32) return {};
    const auto& format = rewriter.node(sums).attrs.get<std::string>("data_format");
    return {{.op = "CastBiasAddGrad",
             .inputs = {x},
             .attrs = {{"data_format", format}},
             .results = {{sums}}}};
  });
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes

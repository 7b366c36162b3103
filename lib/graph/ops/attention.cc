// Attention of each item (sample and head) without a tensor of scores. With s = scale query key^T,
// for causal attention of the keys up to the query's own position alone:
//   FusedAttention       result = softmax(s) value,  log_sum_exp = ln(sum of e^s) per query
//   FusedAttentionGrad   w = e^(s - log_sum_exp),  dw = dy value^T,
//                        ds = scale w (dw - sum of dy result),
//                        dquery = ds key,  dkey = ds^T query,  dvalue = w^T dy
// Lowering creates them, after all dtypes are decided. Scores, softmax and the sum are float32 (U);
// where matmuls take 16-bit operands, w and ds are rounded to T for them. Layouts: BHSD [batch,
// heads, steps, depth], BSHD [batch, steps, heads, depth]; heads may be missing.
// Sources: Dao et al. 2022; Rabe and Staats 2021.

#include "graph/ops/attention.h"

#include <fmt/format.h>

#include "graph/ops/ops.h"
#include "graph/ops/rules.h"

namespace halfstep::graph::ops {
namespace {

constexpr std::string_view k_attention_attrs =
    "T: {half, bfloat16, float, double}, U: {float, double} = float, scale: float = 1.0, "
    "causal: bool = false, layout: string = 'BHSD'";

AttentionGeometry geometry_of(const InferContext& c, std::size_t query) {
  return attention_geometry(
      c.node.attrs, c.input(query).shape, c.input(query + 1).shape, c.input(query + 2).shape);
}

/// The query's shape with rows as wide as those of the value.
Shape result_shape(const InferContext& c, std::size_t query) {
  std::vector<std::int64_t> dims = extents(c.input(query).shape);
  dims.back() = c.input(query + 2).shape.back();
  return Shape(dims);
}

/// One value per query, the heads before the steps in both layouts.
Shape rows_shape(const AttentionGeometry& g, std::size_t rank) {
  return rank == 3 ? Shape{g.batch, g.queries} : Shape{g.batch, g.heads, g.queries};
}

std::vector<Shape> infer_attention(const InferContext& c) {
  const AttentionGeometry g = geometry_of(c, 0);
  return {result_shape(c, 0), rows_shape(g, c.input(0).shape.rank())};
}

std::vector<Shape> infer_attention_grad(const InferContext& c) {
  const AttentionGeometry g = geometry_of(c, 1);
  const Shape result = result_shape(c, 1);
  if (c.input(0).shape != result || c.input(4).shape != result ||
      c.input(5).shape != rows_shape(g, c.input(1).shape.rank())) {
    throw ShapeError(fmt::format("dy, result and log_sum_exp must have shapes {}, {} and {}",
                                 to_string(result),
                                 to_string(result),
                                 to_string(rows_shape(g, c.input(1).shape.rank()))));
  }
  return {c.input(1).shape, c.input(2).shape, c.input(3).shape};
}

std::vector<Value> gradient_attention(const GradientContext& c) {
  const int node =
      c.b.add_node("FusedAttentionGrad",
                   {c.dy[0], c.input(0), c.input(1), c.input(2), c.output(0), c.output(1)},
                   {{"scale", c.node.attrs.get<double>("scale")},
                    {"causal", c.node.attrs.get<bool>("causal")},
                    {"layout", c.node.attrs.get<std::string>("layout")}});
  return {{node, 0}, {node, 1}, {node, 2}};
}

}  // namespace

AttentionGeometry attention_geometry(const Attrs& attrs,
                                     const Shape& query,
                                     const Shape& key,
                                     const Shape& value) {
  const std::string& layout = attrs.get<std::string>("layout");
  if (layout != "BHSD" && layout != "BSHD") {
    throw ShapeError(fmt::format("there is no layout '{}'", layout));
  }
  const std::size_t rank = query.rank();
  AttentionGeometry g{.scale = attrs.get<double>("scale"),
                      .causal = attrs.get<bool>("causal"),
                      .steps_first = rank == 4 && layout == "BSHD"};
  const std::size_t steps = g.steps_first ? 1 : rank - 2, heads = g.steps_first ? 2 : 1;
  const auto same_items = [&](const Shape& x) {
    return x.rank() == rank && x[0] == query[0] && (rank == 3 || x[heads] == query[heads]);
  };
  if ((rank != 3 && rank != 4) || !same_items(key) || !same_items(value) ||
      key.back() != query.back() || key[steps] != value[steps] || key[steps] < 1) {
    throw ShapeError(fmt::format("attention cannot take query {}, key {} and value {}",
                                 to_string(query),
                                 to_string(key),
                                 to_string(value)));
  }
  g.batch = query[0];
  if (rank == 4) g.heads = query[heads];
  g.queries = query[steps];
  g.keys = key[steps];
  g.depth = query.back();
  g.value_depth = value.back();
  return g;
}

std::vector<OpDef> attention_ops() {
  return {
      define("FusedAttention",
             "query: T, key: T, value: T -> result: T, log_sum_exp: U",
             k_attention_attrs,
             {.infer = infer_attention, .gradient = gradient_attention, .stage = Stage::lowered}),
      define("FusedAttentionGrad",
             "dy: T, query: T, key: T, value: T, result: T, log_sum_exp: U -> dquery: T, dkey: T, "
             "dvalue: T",
             k_attention_attrs,
             {.infer = infer_attention_grad, .stage = Stage::lowered}),
  };
}

}  // namespace halfstep::graph::ops

// Attention of each item (sample and head) without a tensor of scores. With s = scale query key^T,
// for causal attention of the keys up to the query's own position alone:
//   FusedAttention       result = softmax(s) value,  log_sum_exp = ln(sum of e^s) per query
//   FusedAttentionGrad   w = e^(s - log_sum_exp),  dw = dy value^T,
//                        ds = scale w (dw - sum of dy result),
//                        dquery = ds key,  dkey = ds^T query,  dvalue = w^T dy
// With dropout, result and dvalue are those of w m, and dw is multiplied by m: 0 with probability
// `rate`, else 1 / (1 - rate), drawn anew for each `ordinal`. With `taken` [batch, keys], the keys
// where it is false have weight 0 for all queries of their sample; a query that sees none but those
// has the result 0 and the log_sum_exp -inf. An ordinal is then there without dropout too, unused.
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
    "T: {half, bfloat16, float, double}, U: {float, double} = float, scale: float = 1.0, causal: "
    "bool = false, layout: string = 'BHSD', rate: float = 0.0, seed: int = 0, stream: int = 0, "
    "first: int = 0";

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

/// `inputs`: the number without the ordinal and the mask.
void check_options(const InferContext& c, std::size_t inputs, const AttentionGeometry& g) {
  const double rate = AttentionDropout(c.node.attrs).rate;
  if (!(rate >= 0 && rate < 1)) throw ShapeError(fmt::format("a dropout of {}", rate));
  const bool masked = c.inputs() == inputs + 2;
  if (!masked && c.inputs() != inputs + (rate > 0 ? 1 : 0)) {
    throw ShapeError("an ordinal is wanted with dropout or a mask, and none without");
  }
  if (masked && c.input(inputs + 1).shape != Shape{g.batch, g.keys}) {
    throw ShapeError(fmt::format("a mask of {} keys in {} samples cannot have shape {}",
                                 g.keys,
                                 g.batch,
                                 to_string(c.input(inputs + 1).shape)));
  }
}

std::vector<Shape> infer_attention(const InferContext& c) {
  const AttentionGeometry g = geometry_of(c, 0);
  check_options(c, 3, g);
  return {result_shape(c, 0), rows_shape(g, c.input(0).shape.rank())};
}

std::vector<Shape> infer_attention_grad(const InferContext& c) {
  const AttentionGeometry g = geometry_of(c, 1);
  check_options(c, 6, g);
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
  std::vector<Value> inputs{c.dy[0], c.input(0), c.input(1), c.input(2), c.output(0), c.output(1)};
  inputs.insert(inputs.end(), c.node.inputs.begin() + 3, c.node.inputs.end());
  const int node = c.b.add_node("FusedAttentionGrad", std::move(inputs), c.node.attrs);
  std::vector<Value> gradients{{node, 0}, {node, 1}, {node, 2}};
  gradients.resize(c.node.inputs.size());
  return gradients;
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

AttentionDropout::AttentionDropout(const Attrs& attrs)
    : rate(attrs.get<double>("rate")),
      seed(static_cast<std::uint64_t>(attrs.get<std::int64_t>("seed"))),
      stream(static_cast<std::uint64_t>(attrs.get<std::int64_t>("stream"))),
      first(attrs.get<std::int64_t>("first")) {}

std::vector<OpDef> attention_ops() {
  return {
      define(
          "FusedAttention",
          "query: T, key: T, value: T, ordinal?: int64, taken?: bool -> result: T, log_sum_exp: U",
          k_attention_attrs,
          {.infer = infer_attention, .gradient = gradient_attention, .stage = Stage::lowered}),
      define("FusedAttentionGrad",
             "dy: T, query: T, key: T, value: T, result: T, log_sum_exp: U, ordinal?: int64, "
             "taken?: bool -> dquery: T, dkey: T, dvalue: T",
             k_attention_attrs,
             {.infer = infer_attention_grad, .stage = Stage::lowered}),
  };
}

}  // namespace halfstep::graph::ops

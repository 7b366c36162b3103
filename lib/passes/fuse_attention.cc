// Attention is built of primitive ops, which the rewrite knows; this pass fuses the chain:
//   scores = query key^T, as float32; with a causal mask, SelectV2(causal_mask, scores, -6e4); with
//   a mask of keys, SelectV2(key_mask, scores, -6e4); weights = Softmax, 0 for masked keys, in the
//   dtype of the value; with dropout, weights = weights / (1 - rate) * keep_mask;
//   result = weights value
// and its gradient, which differentiation appended:
//   dweights = dy value^T; with dropout, dweights = dweights * keep_mask / (1 - rate), 0 for masked
//   keys; ds = (dweights - sum of dweights weights) weights, 0 for masked scores; dquery = ds key;
//   dkey = ds^T query; dvalue = weights^T dy
// It fuses both or neither, since the weights are stored unless both are fused. Factors of the
// query and transposes between [batch, steps, heads, depth] and [batch, heads, steps, depth] around
// the chain become attributes.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "passes/rewriter.h"

namespace halfstep::passes {

using graph::Node;
using graph::Value;

namespace {

/// Scores up to this one have weight 0 next to scores of a usual size.
constexpr double k_max_masked_score = -6e4;
/// Maximum relative error of 1 / (1 - rate) as a 16-bit constant.
constexpr double k_max_rate_error = 0x1p-7;

Pattern batch_matmul(bool adj_x, bool adj_y, std::vector<Pattern> operands) {
  return op(graph::ops::k_batch_matmul_v2, std::move(operands)).where([=](const Node& node) {
    return node.attrs.get<bool>("adj_x") == adj_x && node.attrs.get<bool>("adj_y") == adj_y;
  });
}

/// The value of a Const with equal elements, also behind a Cast that the rewrite appended.
std::optional<double> scalar_constant(const graph::Graph& graph, Value value) {
  if (graph.node(value.node).is(graph::ops::k_cast)) value = graph.node(value.node).inputs[0];
  return graph::constant_of(graph.node(value.node));
}

/// Where a chain casts between float32 and the dtype of its matmuls: nowhere (float32, and the
/// rewrite to bfloat16, which computes the softmax in 16 bits); before and after the softmax and
/// its gradient (mixed policies); before and after the gradient alone (the rewrite to float16, on
/// whose deny list is the Sum of that gradient).
enum class Casts { none, softmax, gradient };

/// Matches attention in one variant: its casts, with or without a causal mask, a mask of keys, and
/// dropout of the weights, which is in training graphs only.
class Attention {
 public:
  Attention(
      Rewriter& rewriter, std::int64_t block, Casts casts, bool causal, bool masked, bool dropout)
      : r_(rewriter),
        block_(block),
        casts_(casts),
        causal_(causal),
        masked_(masked),
        dropout_(dropout) {}

  void fuse() {
    Value root;
    r_.apply(gradient_of_scores().as(root), [&]() -> Replacement {
      return match_gradients(root) ? replacement() : Replacement{};
    });
    if (dropout_) return;
    r_.apply(batch_matmul(false, false, {weights().used_once(), any(value_)}).as(result_),
             [&]() -> Replacement {
               dy_ = {};
               return r_.users(softmax_).size() == 1 ? replacement() : Replacement{};
             });
  }

 private:
  static Pattern cast_of(Pattern x) { return op(graph::ops::k_cast, {std::move(x)}); }
  /// x, or its Cast if the chain casts `at` this part; the Cast is then the only user of x.
  Pattern cast(Casts at, Pattern x) const {
    return casts_ == at ? cast_of(std::move(x).used_once()) : std::move(x);
  }

  /// Its operands have this one use.
  Pattern softmax() {
    Pattern scores = batch_matmul(false, true, {any(query_), any(key_)}).used_once();
    if (casts_ == Casts::softmax) scores = cast_of(std::move(scores)).used_once();
    if (causal_) scores = select(causal_mask_, std::move(scores), causal_fill_).used_once();
    if (masked_) scores = select(key_mask_, std::move(scores), padding_fill_).used_once();
    return op(graph::ops::k_softmax, {std::move(scores)}).as(softmax_);
  }
  Pattern weights() {
    Pattern weights = softmax();
    if (masked_) weights = select(weights_mask_, weights, padding_weight_).as(masked_softmax_);
    if (casts_ != Casts::softmax) return weights;
    return cast_of(masked_ ? weights.used_once() : weights).as(weights_);
  }
  static Pattern select(Value& condition, Pattern x, Value& other) {
    return op(graph::ops::k_select_v2, {any(condition), std::move(x), any(other)});
  }

  /// The gradient that the matmuls of dquery and dkey read.
  Pattern gradient_of_scores() {
    Pattern dweights = batch_matmul(false, true, {any(dy_), any(value_)});
    if (dropout_) {
      dweights = cast(Casts::gradient, std::move(dweights));
      const Pattern numbers = op(graph::ops::k_random_uniform_from_ordinal, {any(ordinal_)});
      const Pattern keep_mask =
          cast_of(op(graph::ops::k_greater_equal, {numbers.as(random_), any(rate_)}))
              .as(keep_mask_);
      dweights =
          op(graph::ops::k_mul,
             {op(graph::ops::k_mul, {dweights.used_once(), keep_mask}).used_once(), any(factor_)});
    }
    dweights = cast(Casts::softmax, std::move(dweights));
    if (masked_) dweights = select_grad(weights_grad_, std::move(dweights));
    if (!dropout_) dweights = cast(Casts::gradient, std::move(dweights));
    dweights = dweights.as(dweights_);
    const bool widens = casts_ == Casts::gradient;
    Value& factor = widens ? float32_softmax_ : softmax_;
    const Pattern terms =
        op(graph::ops::k_mul,
           {same(dweights_), widens ? cast_of(softmax()).as(float32_softmax_) : softmax()});
    const Pattern sums =
        op(graph::ops::k_sum, {terms.used_once(), any(axes_)})
            .used_once()
            .where([](const Node& node) { return node.attrs.get<bool>("keep_dims"); });
    Pattern ds =
        op(graph::ops::k_mul, {op(graph::ops::k_sub, {dweights, sums}).used_once(), same(factor)});
    ds = cast(Casts::gradient, std::move(ds));
    if (masked_) ds = select_grad(key_mask_grad_, std::move(ds));
    if (causal_) ds = select_grad(causal_grad_, std::move(ds));
    return cast(Casts::softmax, std::move(ds));
  }

  /// The gradient of a SelectV2 with a constant: SelectV2(condition, dy, 0).
  struct SelectGrad {
    Value condition, zero;
  };
  static Pattern select_grad(SelectGrad& of, Pattern dy) {
    return select(of.condition, dy.used_once(), of.zero);
  }
  bool is_gradient(const SelectGrad& of, Value condition) const {
    return of.condition == condition && scalar_constant(r_.graph(), of.zero) == 0.0;
  }

  /// Whether the gradients complete the match; sets the values that no pattern captured.
  bool match_gradients(Value ds) {
    std::optional<std::vector<std::int64_t>> axes = r_.graph().input(axes_).constant();
    const auto last = static_cast<std::int64_t>(r_.type(softmax_).shape.rank()) - 1;
    if (axes != std::vector{last} && axes != std::vector<std::int64_t>{-1}) return false;
    if ((causal_ && !is_gradient(causal_grad_, causal_mask_)) ||
        (masked_ &&
         !(is_gradient(weights_grad_, key_mask_) && is_gradient(key_mask_grad_, key_mask_)))) {
      return false;
    }
    // The weights before their cast.
    masked_softmax_ = masked_ ? r_.user(softmax_, graph::ops::k_select_v2) : softmax_;
    if (!masked_softmax_.valid()) return false;
    if (masked_) {
      const Node& select = r_.node(masked_softmax_);
      if (select.inputs[1] != softmax_) return false;
      weights_mask_ = select.inputs[0];
      padding_weight_ = select.inputs[2];
    }
    weights_ =
        casts_ == Casts::softmax ? r_.user(masked_softmax_, graph::ops::k_cast) : masked_softmax_;
    if (casts_ == Casts::softmax && masked_ && r_.users(masked_softmax_).size() != 1) return false;
    if (dropout_ && (!weights_.valid() || !match_dropout())) return false;
    // The matmuls of result and dvalue, or the one op before both; and two ops of the gradient.
    std::size_t users_of_softmax = casts_ == Casts::softmax || masked_ || dropout_ ? 3 : 4;
    if (casts_ == Casts::gradient) {
      --users_of_softmax;
      if (r_.users(float32_softmax_).size() != 2) return false;
    }
    if (!weights_.valid() || (weights_ != softmax_ && r_.users(weights_).size() != 2)) return false;
    result_ = reader(weights_, value_, false);
    dvalue_ = reader(weights_, dy_, true);
    dquery_ = reader(ds, key_, false);
    dkey_ = reader(ds, query_, true);
    return result_.valid() && dvalue_.valid() && dquery_.valid() && dkey_.valid() &&
           r_.users(dweights_).size() == 2 && r_.users(ds).size() == 2 &&
           r_.users(softmax_).size() == users_of_softmax;
  }

  /// Sets weights_ to the weights after dropout; false where the dropout cannot be fused.
  bool match_dropout() {
    const std::optional<double> rate = scalar_constant(r_.graph(), rate_);
    const std::optional<double> factor = scalar_constant(r_.graph(), factor_);
    if (!rate || !factor || !(*rate >= 0 && *rate < 1) ||
        std::abs(*factor * (1 - *rate) - 1) > k_max_rate_error ||
        r_.type(random_).shape != r_.type(softmax_).shape) {
      return false;
    }
    dropout_rate_ = *rate;
    Value scaled;
    for (const int user : r_.users(weights_)) {
      if (user < 0) return false;
      const Node& node = r_.graph().node(user);
      // The rewrite casts constants and the mask where the forward chain alone is in 16 bits.
      if (node.is(graph::ops::k_mul) && node.inputs[0] == weights_ &&
          scalar_constant(r_.graph(), node.inputs[1]) == factor) {
        scaled = {user, 0};
      }
    }
    if (!scaled.valid() || (weights_ != softmax_ && r_.users(weights_).size() != 1)) return false;
    weights_ = single_user(scaled, graph::ops::k_mul);
    if (!weights_.valid()) return false;
    const Value keep_mask = r_.node(weights_).inputs[1];
    return keep_mask == keep_mask_ || (r_.node(keep_mask).is(graph::ops::k_cast) &&
                                       r_.node(keep_mask).inputs[0] == keep_mask_);
  }

  /// The matmul of x, transposed or not, and y.
  Value reader(Value x, Value y, bool adj_x) const {
    for (const int user : r_.users(x)) {
      if (user < 0) continue;
      const Node& node = r_.graph().node(user);
      if (node.is(graph::ops::k_batch_matmul_v2) && node.inputs == std::vector{x, y} &&
          node.attrs.get<bool>("adj_x") == adj_x && !node.attrs.get<bool>("adj_y")) {
        return {user, 0};
      }
    }
    return {};
  }

  /// Whether the causal mask is: position of the query >= position of the key.
  bool is_causal_mask() const {
    const Node& compare = r_.node(causal_mask_);
    if (!compare.is(graph::ops::k_greater_equal)) return false;
    const Shape& scores = r_.type(softmax_).shape;
    const std::int64_t of_query = scores[scores.rank() - 2], of_key = scores.back();
    const auto counts = [&](Value steps, const Shape& shape) {
      if (r_.type(steps).shape != shape) return false;
      while (r_.node(steps).is(graph::ops::k_reshape)) steps = r_.node(steps).inputs[0];
      std::vector<std::int64_t> all(static_cast<std::size_t>(shape.elements()));
      std::iota(all.begin(), all.end(), 0);
      return r_.graph().input(steps).constant() == all;
    };
    return counts(compare.inputs[0], {of_query, 1}) && counts(compare.inputs[1], {1, of_key});
  }

  /// The mask [batch, keys] before a Reshape that adds axes of 1; not valid for another mask.
  Value key_mask() const {
    const Shape& scores = r_.type(softmax_).shape;
    std::vector<std::int64_t> spread(scores.rank(), 1);
    spread.front() = scores[0];
    spread.back() = scores.back();
    if (weights_mask_ != key_mask_ || r_.type(key_mask_).shape != Shape(spread)) return {};
    Value mask = key_mask_;
    while (r_.type(mask).shape != Shape{scores[0], scores.back()}) {
      if (!r_.node(mask).is(graph::ops::k_reshape)) return {};
      mask = r_.node(mask).inputs[0];
    }
    return mask;
  }

  /// Whether this constant score has weight 0 after the softmax.
  bool is_masked_score(Value score) const {
    const std::optional<double> value = scalar_constant(r_.graph(), score);
    return value && *value <= k_max_masked_score;
  }

  /// Whether padding the scores to whole blocks at most doubles their number. Otherwise the unfused
  /// chain is faster: a float32 step of transformer_patches on a CPU, without dropout and with
  /// scores of 16 x 16, took 9.3 ms unfused and 11.7 ms in blocks.
  bool fills_blocks() const {
    const Shape& scores = r_.type(softmax_).shape;
    const std::int64_t queries = scores[scores.rank() - 2], keys = scores.back();
    const auto padded = [&](std::int64_t n) { return (n + block_ - 1) / block_ * block_; };
    return padded(queries) * padded(keys) <= 2 * queries * keys;
  }

  bool has_equal_batch_axes() const {
    const Shape& query = r_.type(query_).shape;
    const auto items = [](const Shape& x) { return x.dims().first(x.rank() - 2); };
    return std::ranges::equal(items(query), items(r_.type(key_).shape)) &&
           std::ranges::equal(items(query), items(r_.type(value_).shape));
  }

  Replacement replacement() {
    const std::size_t rank = r_.type(query_).shape.rank();
    if ((rank != 3 && rank != 4) || !has_equal_batch_axes() || !fills_blocks() ||
        r_.type(value_).dtype != r_.type(query_).dtype) {
      return {};
    }
    if (causal_ && !(is_masked_score(causal_fill_) && is_causal_mask())) return {};
    Value mask;
    if (masked_) {
      mask = key_mask();
      if (!mask.valid() || !is_masked_score(padding_fill_) ||
          scalar_constant(r_.graph(), padding_weight_) != 0) {
        return {};
      }
    }
    const bool trains = dy_.valid();
    // The positions of the new nodes, which factors and transposes do not change.
    const int forward_at = result_.node;
    int backward_at = dvalue_.node;
    for (const Value gradient : {dquery_, dkey_}) {
      if (trains && r_.before(gradient.node, backward_at)) backward_at = gradient.node;
    }
    graph::Attrs attrs;
    if (causal_) attrs.set("causal", true);
    if (dropout_) {
      attrs.set("rate", dropout_rate_);
      for (const std::string name : {"seed", "stream", "first"}) {
        attrs.set(name, r_.node(random_).attrs.get<std::int64_t>(name));
      }
    }
    absorb_scale(attrs);
    absorb_transposes(attrs);
    Replacement nodes;
    if (masked_ && !dropout_) {
      nodes.push_back({.op = graph::ops::k_const.name,
                       .inputs = {},
                       .attrs = {{"dtype", DType::int64},
                                 {"shape", Shape{}},
                                 {"value", std::vector<std::int64_t>{0}}},
                       .at = forward_at,
                       .origin = forward_at,
                       .name = "Const"});
      ordinal_ = new_value(0);
    }
    const std::size_t forward = nodes.size();
    nodes.push_back({.op = graph::ops::k_fused_attention.name,
                     .inputs = {query_, key_, value_},
                     .attrs = attrs,
                     .at = forward_at,
                     .origin = forward_at,
                     .named = forward_at,
                     .results = {{result_}}});
    if (trains) {
      const Value result = new_value(static_cast<int>(forward)), log_sum_exp{result.node, 1};
      nodes.push_back({.op = graph::ops::k_fused_attention_grad.name,
                       .inputs = {dy_, query_, key_, value_, result, log_sum_exp},
                       .attrs = attrs,
                       .at = backward_at,
                       .origin = backward_at,
                       .named = backward_at,
                       .results = {{dquery_}, {dkey_, 1}, {dvalue_, 2}}});
    }
    for (std::size_t i = forward; i < nodes.size(); ++i) {
      if (dropout_ || masked_) nodes[i].inputs.push_back(ordinal_);
      if (masked_) nodes[i].inputs.push_back(mask);
    }
    return nodes;
  }

  /// Makes the multiplication of the query, and of its gradient, by a constant an attribute.
  void absorb_scale(graph::Attrs& attrs) {
    const Node& node = r_.node(query_);
    if (!node.is(graph::ops::k_mul)) return;
    for (const std::size_t operand : {0U, 1U}) {
      const Value factor = node.inputs[1 - operand];
      const std::optional<double> scale = scalar_constant(r_.graph(), factor);
      if (!scale || r_.type(node.inputs[operand]) != r_.type(query_)) continue;
      if (dy_.valid()) {
        const Value scaled = single_user(dquery_, graph::ops::k_mul);
        if (!scaled.valid() || r_.node(scaled).inputs[1] != factor) return;
        dquery_ = scaled;
      }
      query_ = node.inputs[operand];
      attrs.set("scale", *scale);
      return;
    }
  }

  /// Makes the transposes of all operands and results an attribute, if each of them has one.
  void absorb_transposes(graph::Attrs& attrs) {
    std::vector<Value*> before{&query_, &key_, &value_}, after{&result_};
    if (dy_.valid()) {
      before.push_back(&dy_);
      after.insert(after.end(), {&dquery_, &dkey_, &dvalue_});
    }
    const auto swaps = [&](Value x) {
      const Node& node = r_.node(x);
      return node.is(graph::ops::k_transpose) &&
             r_.graph().input(node.inputs[1]).constant() == std::vector<std::int64_t>{0, 2, 1, 3};
    };
    std::vector<Value> outside;
    for (const Value* value : before) {
      if (!swaps(*value)) return;
      outside.push_back(r_.node(*value).inputs[0]);
    }
    for (const Value* value : after) {
      outside.push_back(single_user(*value, graph::ops::k_transpose));
      if (!outside.back().valid() || !swaps(outside.back())) return;
    }
    before.insert(before.end(), after.begin(), after.end());
    for (std::size_t i = 0; i < before.size(); ++i) *before[i] = outside[i];
    attrs.set("layout", std::string("BSHD"));
  }

  /// The result of a value's only user if that is this op and has the value as first operand.
  Value single_user(Value value, graph::OpHandle op) const {
    const std::vector<int>& users = r_.users(value);
    if (users.size() != 1 || users[0] < 0) return {};
    const Node& node = r_.graph().node(users[0]);
    return node.is(op) && node.inputs[0] == value ? Value{users[0], 0} : Value{};
  }

  Rewriter& r_;
  std::int64_t block_;
  Casts casts_;
  bool causal_, masked_, dropout_;
  Value query_, key_, value_, causal_mask_, causal_fill_, key_mask_, padding_fill_, softmax_;
  Value weights_mask_, padding_weight_, masked_softmax_, weights_, result_;
  Value dy_, dweights_, float32_softmax_, axes_, dquery_, dkey_, dvalue_;
  SelectGrad causal_grad_, key_mask_grad_, weights_grad_;
  Value ordinal_, random_, rate_, keep_mask_, factor_;
  double dropout_rate_ = 0;
};

}  // namespace

graph::Graph fuse_attention(const graph::Graph& graph, const Target& target) {
  Rewriter rewriter(graph, target.supports);
  for (const Casts casts : {Casts::none, Casts::softmax, Casts::gradient}) {
    for (const bool causal : {false, true}) {
      for (const bool masked : {false, true}) {
        for (const bool dropout : {false, true}) {
          Attention(rewriter, target.attention_block, casts, causal, masked, dropout).fuse();
        }
      }
    }
  }
  return prune(rewriter.finish());
}

}  // namespace halfstep::passes

#include <algorithm>

#include "graph/op_handles.h"
#include "passes/rewriter.h"

namespace halfstep::passes {
namespace {

using graph::Graph;
using graph::Node;
using graph::Value;

constexpr graph::OpHandle k_sparse_cross_entropy{"SparseSoftmaxCrossEntropyWithLogits"};
constexpr graph::OpHandle k_arg_max{"ArgMax"};
constexpr graph::OpHandle k_equal{"Equal"};
constexpr graph::OpHandle k_expand_dims{"ExpandDims"};

/// The values around one cross-entropy; those that do not exist are invalid.
struct Loss {
  Value loss;    ///< of each row
  Value logits;  ///< before a cast to float32
  Value softmax = {}, mean = {}, correct = {};
  Value gradient = {};  ///< of `logits`
  Value seed = {};      ///< of the gradient
};

class SoftmaxLosses {
 public:
  SoftmaxLosses(const Graph& graph, const Target& target) : rewriter_(graph, target.supports) {}

  Graph run() {
    for (int id = 0; id < rewriter_.graph().size(); ++id) {
      if (rewriter_.graph().node(id).is(k_sparse_cross_entropy)) fuse(id);
    }
    return prune(rewriter_.finish());
  }

 private:
  /// The result of the only user of a value if it is this op; else not valid.
  Value next(Value value, graph::OpHandle op) const {
    return rewriter_.users(value).size() == 1 ? rewriter_.user(value, op) : Value{};
  }

  bool is_float_scalar(Value value) const {
    return rewriter_.type(value) == graph::TensorType{DType::float32, Shape{}};
  }

  bool is_one(Value value) const { return graph::constant_of(rewriter_.node(value)) == 1.0; }

  /// Sum(Cast(ArgMax(softmax) == labels)).
  Value correct_of(Value softmax, Value labels) const {
    Value at = rewriter_.user(softmax, k_arg_max);
    if (const Value cast = next(at, graph::ops::k_cast); cast.valid()) at = cast;
    at = next(at, k_equal);
    if (!at.valid()) return {};
    const std::vector<Value>& compared = rewriter_.node(at).inputs;
    if (std::find(compared.begin(), compared.end(), labels) == compared.end()) return {};
    at = next(next(at, graph::ops::k_cast), graph::ops::k_sum);
    return at.valid() && is_float_scalar(at) ? at : Value{};
  }

  /// The seed of Mul(ExpandDims(RealDiv(Tile(Reshape(seed)), rows)), slopes).
  Value seed_of(Value slopes, Value product) const {
    const std::vector<Value>& factors = rewriter_.node(product).inputs;
    if (factors[1] != slopes || !rewriter_.node(factors[0]).is(k_expand_dims)) return {};
    const Value divided = rewriter_.node(factors[0]).inputs[0];
    if (!rewriter_.node(divided).is(graph::ops::k_real_div)) return {};
    const Value tile = rewriter_.node(divided).inputs[0];
    const Node& rows = rewriter_.node(rewriter_.node(divided).inputs[1]);
    const auto wanted = static_cast<double>(rewriter_.type(slopes).shape[0]);
    if (graph::constant_of(rows) != wanted || !rewriter_.node(tile).is(graph::ops::k_tile))
      return {};
    Value seed = rewriter_.node(tile).inputs[0];
    while (rewriter_.node(seed).is(graph::ops::k_reshape)) seed = rewriter_.node(seed).inputs[0];
    if (!is_float_scalar(seed)) return {};
    // A loss scale is multiplied by the gradient 1 of the loss: exactly itself.
    if (rewriter_.node(seed).is(graph::ops::k_mul)) {
      const std::vector<Value>& scaled = rewriter_.node(seed).inputs;
      if (is_one(scaled[0]) && is_float_scalar(scaled[1])) return scaled[1];
      if (is_one(scaled[1]) && is_float_scalar(scaled[0])) return scaled[0];
    }
    return seed;
  }

  Loss loss_of(int id) const {
    const Node& node = rewriter_.graph().node(id);
    Loss found{.loss = {id, 0}, .logits = node.inputs[0]};
    const Value wide = node.inputs[0];
    if (rewriter_.node(wide).is(graph::ops::k_cast)) {
      const Value narrow = rewriter_.node(wide).inputs[0];
      if (is_half(rewriter_.type(narrow).dtype)) found.logits = narrow;
    }
    found.softmax = rewriter_.user(wide, graph::ops::k_softmax);
    if (found.softmax.valid()) found.correct = correct_of(found.softmax, node.inputs[1]);
    const Value mean = rewriter_.user(found.loss, graph::ops::k_mean);
    if (mean.valid() && is_float_scalar(mean)) found.mean = mean;
    const Value slopes{id, 1};
    if (const Value product = next(slopes, graph::ops::k_mul); product.valid()) {
      found.seed = seed_of(slopes, product);
      found.gradient = product;
      if (found.logits != wide) {
        const Value cast = next(product, graph::ops::k_cast);
        const bool fits = cast.valid() && rewriter_.type(cast) == rewriter_.type(found.logits);
        found.gradient = fits ? cast : Value{};
      }
      if (!found.seed.valid()) found.gradient = {};
    }
    return found;
  }

  /// Moves the scalar ops that compute a seed to the position of node `id`. A seed depends on the
  /// loss scale and constants only, so it can be computed early.
  bool move_before(Value seed, int id) {
    std::vector<int> late;
    std::vector<Value> open{seed};
    while (!open.empty()) {
      const Value value = open.back();
      open.pop_back();
      if (rewriter_.before(value.node, id)) continue;
      const Node& node = rewriter_.node(value);
      const bool reads =
          node.is(graph::ops::k_const, graph::ops::k_var_handle_op, graph::ops::k_read_variable_op);
      if (!reads && !(node.is(graph::ops::k_mul) && is_float_scalar(value))) return false;
      late.push_back(value.node);
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    std::sort(late.begin(), late.end());
    late.erase(std::unique(late.begin(), late.end()), late.end());
    for (const int moved : late) rewriter_.move(moved, rewriter_.position(id));
    return true;
  }

  void fuse(int id) {
    if (!is_float_or_half(rewriter_.graph().node(id))) return;
    const Loss loss = loss_of(id);
    // A gradient with another reader is not fused, and fusing the rest would gain nothing.
    if (!rewriter_.users({id, 1}).empty() && !loss.gradient.valid()) return;
    if (!loss.softmax.valid() && !loss.gradient.valid()) return;
    // Everything is computed at the position of the cross-entropy.
    if (loss.softmax.valid()) {
      const std::vector<int>& users = rewriter_.users(loss.softmax);
      if (std::any_of(users.begin(), users.end(), [&](int user) {
            return user >= 0 && rewriter_.before(user, id);
          })) {
        return;
      }
    }
    const Node& node = rewriter_.graph().node(id);
    NewNode fused{.op = "SoftmaxLoss", .inputs = {loss.logits, node.inputs[1]}};
    std::string letters;
    std::vector<DType> dtypes;
    const auto add = [&](char letter, Value value, DType dtype) {
      if (!value.valid()) return;
      fused.results.push_back({value, static_cast<int>(letters.size())});
      letters += letter;
      dtypes.push_back(dtype);
    };
    add('p', loss.softmax, DType::float32);
    const std::vector<int>& readers = rewriter_.users(loss.loss);
    const bool only_mean = loss.mean.valid() && readers.size() == 1;
    if (!only_mean && !readers.empty()) add('l', loss.loss, DType::float32);
    add('m', loss.mean, DType::float32);
    add('c', loss.correct, DType::float32);
    add('g', loss.gradient, rewriter_.type(loss.logits).dtype);
    if (loss.gradient.valid()) fused.inputs.push_back(loss.seed);
    fused.attrs = {{"forms", letters}, {"Tresults", std::move(dtypes)}};
    fused.at = fused.origin = fused.named = id;
    if (!rewriter_.accepts({fused})) return;
    if (loss.gradient.valid() && !move_before(loss.seed, id)) return;
    rewriter_.add({std::move(fused)}, id);
  }

  Rewriter rewriter_;
};

}  // namespace

Graph fuse_softmax_loss(const Graph& graph, const Target& target) {
  return SoftmaxLosses(graph, target).run();
}

}  // namespace halfstep::passes

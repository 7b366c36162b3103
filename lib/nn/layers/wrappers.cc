// Layers around another layer, which is written as a map with its type in the field `layer`.

#include <fmt/format.h>

#include <algorithm>

#include "config/blocks.h"
#include "graph/op_handles.h"
#include "graph/ops/ops.h"
#include "nn/layers/image.h"
#include "nn/layers/samples.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// A layer inside another one, which gives it name, policy and trainability.
struct Inner {
  const LayerDef* def = nullptr;
  std::unique_ptr<Layer> layer;

  /// Problems go to `diagnostics`; then `layer` may be null.
  static Inner read(const config::Typed& typed, Diagnostics& diagnostics) {
    Inner inner;
    // A missing key was reported when the fields were read.
    if (!typed.type.empty()) inner.def = find_layer(typed.type, typed.where, diagnostics);
    if (inner.def == nullptr) return inner;
    for (const config::Node::Entry& entry : typed.node.entries) {
      const auto is = [&](std::string_view key) { return key == entry.key; };
      if (std::ranges::none_of(k_common_layer_keys, is) &&
          std::ranges::none_of(config::k_source_keys, is)) {
        continue;
      }
      diagnostics.error(entry.where,
                        fmt::format("a wrapped layer cannot have '{}'", entry.key),
                        "set it on the wrapper");
    }
    inner.layer = inner.def->make(typed.node, diagnostics);
    return inner;
  }

  /// Emits the layer as `<name of the layer around it>/<name>`, on inputs of which the first has
  /// `mask`. `rows` of its samples are one sample of the layer around it.
  std::vector<LayerOutput> build(LayerContext& c,
                                 std::string_view name,
                                 std::span<const Value> x,
                                 Value mask,
                                 std::int64_t rows = 1) const {
    const std::string path = fmt::format("{}/{}", c.name, name);
    const graph::ScopeGuard scope(c.b, c.b.origin(), fmt::format("{}/{}", c.b.prefix(), name));
    LayerContext context{.b = c.b,
                         .name = path,
                         .policy = c.policy,
                         .training = c.training,
                         .trainable = c.trainable,
                         .ordinal = c.ordinal,
                         .seed = c.seed,
                         .record = c.record,
                         .first_sample = c.first_sample * rows,
                         .share = rows == 1 ? c.share : BatchShare(0),
                         .sync_batch_norm = c.sync_batch_norm,
                         .has_masters = c.has_masters,
                         .keeps_states = c.keeps_states,
                         .masks = std::span(&mask, 1)};
    return build_layer(context, *layer, def->masks, x);
  }
};

enum class MergeMode { concat, sum, mul, ave };
constexpr std::array k_merge_modes{
    config::Named{MergeMode::concat, "concat"},
    config::Named{MergeMode::sum, "sum"},
    config::Named{MergeMode::mul, "mul"},
    config::Named{MergeMode::ave, "ave"},
};

/// Source: Schuster and Paliwal 1997.
struct Bidirectional {
  static constexpr MaskUse k_masks = MaskUse::used;
  config::Typed layer;
  std::optional<config::Typed> backward_layer;
  std::optional<MergeMode> merge_mode = MergeMode::concat;
  std::vector<std::string> initial_state;
  Inner forward{};
  Inner backward{};

  void fields(config::Fields& f) {
    f.field("layer",
            layer,
            {},
            {.doc = "The recurrent layer: a map with its type and arguments, without a name.",
             .required = true});
    f.choice("merge_mode",
             merge_mode,
             k_merge_modes,
             {.doc = "How the outputs of both directions are joined: one after the other along the "
                     "last axis, or their sum, product or mean; null: not at all, that of the "
                     "other direction is output 1."});
    f.field("backward_layer",
            backward_layer,
            {},
            {.doc = "The layer for the other direction, with go_backwards: true; null: one like "
                    "`layer`, with separate weights."});
    initial_state_field(f, initial_state);
  }

  void check(Diagnostics& diagnostics, const Where&) {
    config::Typed other = backward_layer.value_or(layer);
    if (!backward_layer) go_backwards(other.node);
    forward = read_recurrent(layer, diagnostics);
    Diagnostics unsaid;  // the problems of `layer` are reported once
    backward = read_recurrent(other, backward_layer ? diagnostics : unsaid);
    if (forward.layer == nullptr || backward.layer == nullptr) return;
    const Recurrence one = *forward.layer->recurrence(), two = *backward.layer->recurrence();
    if (one.go_backwards == two.go_backwards) {
      diagnostics.error(
          other.where,
          fmt::format("both layers process the sequence {}, and must have opposite directions",
                      one.go_backwards ? "backwards" : "forwards"),
          backward_layer ? "give one of them go_backwards: true" : "remove go_backwards");
    }
    for (const auto& [name, same] :
         {std::pair("return_sequences", one.return_sequences == two.return_sequences),
          std::pair("return_state", one.return_state == two.return_state)}) {
      if (same) continue;
      diagnostics.error(other.where, fmt::format("{} must be the same in both layers", name));
    }
    if (forward.layer->states() == backward.layer->states()) return;
    diagnostics.error(other.where, "both layers must have the same number of states");
  }

  /// The number of states of both layers; 0 where the config of a layer has errors.
  std::size_t states() const { return forward.layer == nullptr ? 0 : 2 * forward.layer->states(); }
  std::size_t outputs() const {
    const bool return_state = forward.layer != nullptr && forward.layer->recurrence()->return_state;
    return (merge_mode ? 1 : 2) + (return_state ? states() : 0);
  }

  bool keeps_state() const {
    return forward.layer != nullptr && backward.layer != nullptr &&
           (forward.layer->keeps_state() || backward.layer->keeps_state());
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    const std::size_t own = forward.layer->states();
    const auto inputs = [&](std::size_t first) {
      std::vector<Value> all{x[0]};
      if (x.size() > 1) {
        const auto given = x.subspan(first, own);
        all.insert(all.end(), given.begin(), given.end());
      }
      return all;
    };
    const std::vector<LayerOutput> of_forward =
        forward.build(c, fmt::format("forward_{}", forward.def->type), inputs(1), c.mask_of(0));
    // As in Keras, a layer that is given keeps its name.
    const std::vector<LayerOutput> of_backward =
        backward.build(c,
                       fmt::format("{}{}", backward_layer ? "" : "backward_", backward.def->type),
                       inputs(1 + own),
                       c.mask_of(0));
    Value y = of_forward[0].value, back = of_backward[0].value;
    if (forward.layer->recurrence()->return_sequences) {
      const bool forwards = !forward.layer->recurrence()->go_backwards;
      (forwards ? back : y) = reversed(b, forwards ? back : y);
      c.mask = c.mask_of(0);
    }
    // As in Keras, an output is 0 at masked steps.
    const auto with_zeros = [&](Value sequence) {
      if (!c.mask.valid()) return sequence;
      return b.add("SelectV2", {c.spread(c.mask, 3), sequence, b.scalar(b.dtype(y), 0)});
    };
    if (!merge_mode) c.further.push_back({with_zeros(back), c.mask});
    for (const auto* of : {&of_forward, &of_backward}) {
      c.further.insert(c.further.end(), of->begin() + 1, of->end());
    }
    return with_zeros(merge_mode ? merge(b, y, back) : y);
  }

 private:
  static void go_backwards(config::Node& node) {
    if (config::Node* given = node.find("go_backwards")) {
      *given = config::Node::scalar("true", given->where);
    } else {
      node.entries.push_back(
          {"go_backwards", node.where, config::Node::scalar("true", node.where)});
    }
  }

  /// Reads the inner layer. A layer that is not recurrent is reported and skipped.
  static Inner read_recurrent(const config::Typed& typed, Diagnostics& diagnostics) {
    Inner inner = Inner::read(typed, diagnostics);
    if (inner.layer == nullptr || inner.layer->recurrence()) return inner;
    diagnostics.error(typed.where,
                      fmt::format("must be a recurrent layer, got '{}'", typed.type),
                      "one of gru, lstm, simple_rnn");
    return {};
  }

  /// The steps in the other order; a reversal that is there already is undone.
  static Value reversed(graph::Builder& b, Value x) {
    const graph::Node& node = b.graph().node(x.node);
    if (node.is(graph::ops::k_reverse_v2)) return node.inputs[0];
    return b.add("ReverseV2", {x, b.ints({1})});
  }

  Value merge(graph::Builder& b, Value y, Value back) const {
    switch (*merge_mode) {
      case MergeMode::concat: {
        const auto last = static_cast<double>(b.shape(y).rank() - 1);
        return b.add("ConcatV2", {y, back, b.scalar(DType::int32, last)});
      }
      case MergeMode::sum:
        return b.add("AddV2", {y, back});
      case MergeMode::mul:
        return b.add("Mul", {y, back});
      default:
        return b.add("Mul", {b.add("AddV2", {y, back}), b.scalar(b.dtype(y), 0.5)});
    }
  }
};

/// The layer sees the steps as samples of one batch.
struct TimeDistributed {
  static constexpr MaskUse k_masks = MaskUse::passed;
  config::Typed layer;
  Inner inner{};

  void fields(config::Fields& f) {
    f.field(
        "layer",
        layer,
        {},
        {.doc = "The layer: a map with its type and arguments, without a name.", .required = true});
  }

  void check(Diagnostics& diagnostics, const Where&) {
    inner = Inner::read(layer, diagnostics);
    if (inner.def == nullptr) return;
    if (inner.def->traits.min_inputs > 1) {
      diagnostics.error(
          layer.where, fmt::format("must be a layer with one input; {} takes several", layer.type));
    }
    if (inner.layer != nullptr && inner.layer->outputs() > 1) {
      diagnostics.error(layer.where,
                        fmt::format("must be a layer with one output; this {} has {}",
                                    layer.type,
                                    inner.layer->outputs()));
    }
    if (inner.layer != nullptr && inner.layer->keeps_state()) {
      diagnostics.error(layer.where,
                        fmt::format("{} would keep a state for each step of a batch", layer.type),
                        fmt::format("use {} by itself, or without stateful", layer.type));
    }
    if (inner.def->traits.mixes_samples) {
      diagnostics.error(
          layer.where,
          fmt::format("{} would mix the steps: its statistics are those of a batch", layer.type),
          fmt::format("use {} by itself", layer.type));
    }
  }

  std::optional<std::int64_t> index_limit() const {
    return inner.layer == nullptr ? std::nullopt : inner.layer->index_limit();
  }

  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    const Shape in = b.shape(x[0]);
    if (in.rank() < 3) {
      c.fail(fmt::format("needs sequences of samples [steps, ...], got samples [{}]",
                         fmt::join(in.dims().subspan(1), ", ")));
    }
    const Shape of_step = sample_of(sample_of(in));
    const Value samples = graph::ops::reshape(b, x[0], batched(in[0] * in[1], of_step));
    const auto [y, mask] =
        inner.build(c, inner.def->type, std::span(&samples, 1), {}, in[1]).front();
    if (mask.valid()) {
      c.fail(fmt::format("the mask that {} makes would be lost", inner.def->type));
    }
    return graph::ops::reshape(b, y, batched(in[0], batched(in[1], sample_of(b.shape(y)))));
  }
};

}  // namespace

extern const LayerDefs k_wrapper_layers{
    layer_def<Bidirectional>(
        "bidirectional",
        "A recurrent layer over a sequence and over its reverse (Schuster and Paliwal 1997). "
        "Initial "
        "states are those of the forward layer, then those of the other one; with return_state the "
        "last states follow the outputs in that order.",
        {.max_states = 4,
         .example = "{layer: {type: lstm, units: 4}}",
         .example_input = "[5, 3]",
         .shapes =
             "x [batch, steps, channels], outputs as those of the layer, with concat twice as "
             "many units; with return_sequences both outputs are in the order of x. Weights "
             "forward_<type>/... and backward_<type>/..., each as the layer's own; those of a "
             "backward_layer are <type>/..."}),
    layer_def<TimeDistributed>(
        "time_distributed",
        "A layer applied to each step of a sequence, with the same weights at all of them.",
        {.example = "{layer: {type: dense, units: 4}}",
         .example_input = "[5, 3]",
         .shapes =
             "x [batch, steps, ...], y [batch, steps, ...] with the layer's output at each step. "
             "Weights <type>/..., as the layer's own",
         .numerics =
             "The steps are samples of one batch for the layer, so a dropout draws for each "
             "step anew."}),
};

}  // namespace halfstep::nn

#pragma once
// A loss is a plain struct: Keras's fields and a function that emits one float32 loss for each row
// of predictions. table.cc lists the entries of all files. Losses are computed in float32 whatever
// the policy: predictions are cast to float32 before.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "config/fields.h"
#include "config/reader.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/shape.h"
#include "graph/builder.h"

namespace halfstep::nn {

/// The arguments of a loss.
struct LossContext {
  graph::Builder& b;
  /// float32 [rows, outputs]: a row for each sample, or for each position of each sample.
  graph::Value predictions;
  /// The scores before a final softmax or sigmoid, float32, when the model ends in one: training
  /// differentiates the cross-entropy of the scores, as in Keras, because log(softmax(x))
  /// underflows where the fused form does not.
  graph::Value softmax_logits;
  graph::Value sigmoid_logits;
  graph::Value labels;  ///< int32 [rows], or float32 of as many elements as `predictions`
};

/// The labels that a loss compares the outputs with.
enum class LabelKind {
  classes,  ///< class numbers
  targets,  ///< float targets of the output's shape, or class numbers read as one-hot vectors
  events,   ///< like targets; for a single output, a class number is 0 or 1
  signs,    ///< like events, where -1 stands for 0 too
};

/// Whether labels are answers, yes or no, of each output.
constexpr bool of_events(LabelKind kind) {
  return kind == LabelKind::events || kind == LabelKind::signs;
}

class Loss {
 public:
  virtual ~Loss() = default;
  virtual LabelKind label_kind() const = 0;
  /// The loss of each row of predictions, float32 [rows].
  virtual graph::Value build(const LossContext& c) const = 0;
  /// True when predictions are scores rather than probabilities.
  virtual bool from_logits() const = 0;
  /// Whether the loss has the field from_logits.
  virtual bool may_take_logits() const { return false; }
  /// True when predictions must be probabilities; false for scores, and for real values.
  virtual bool takes_probabilities() const = 0;
  /// Labels of this number are excluded from loss and metrics; build() gets class 0 instead.
  virtual std::optional<std::int64_t> ignored_class() const { return std::nullopt; }
};

struct LossDef {
  std::string_view type;
  std::string_view doc;
  void (*fields)(config::Fields& f) = nullptr;
  std::unique_ptr<Loss> (*make)(const config::Node& node, Diagnostics& diagnostics) = nullptr;
};

template <class L>
constexpr LossDef loss_def(std::string_view type, std::string_view doc) {
  class Adapter final : public Loss {
   public:
    explicit Adapter(L l) : loss_(std::move(l)) {}
    graph::Value build(const LossContext& c) const override { return loss_.build(c); }
    LabelKind label_kind() const override {
      if constexpr (requires { L::k_labels; }) return L::k_labels;
      return LabelKind::targets;
    }
    bool from_logits() const override {
      if constexpr (requires { loss_.from_logits; }) return loss_.from_logits;
      return false;
    }
    bool may_take_logits() const override {
      return requires { loss_.from_logits; };
    }
    bool takes_probabilities() const override {
      if constexpr (requires { L::k_probabilities; }) return L::k_probabilities;
      if constexpr (requires { loss_.from_logits; }) return !loss_.from_logits;
      return false;
    }
    std::optional<std::int64_t> ignored_class() const override {
      if constexpr (requires { loss_.ignore_class; }) return loss_.ignore_class;
      return std::nullopt;
    }

   private:
    L loss_;
  };
  LossDef def{type, doc, nullptr, nullptr};
  def.fields = [](config::Fields& f) {
    L loss;
    loss.fields(f);
  };
  def.make = [](const config::Node& node, Diagnostics& diagnostics) -> std::unique_ptr<Loss> {
    L loss;
    config::read(node, loss, diagnostics);
    return std::make_unique<Adapter>(std::move(loss));
  };
  return def;
}

/// All losses, alphabetical.
std::span<const LossDef* const> loss_table();

/// The loss of a config. Unknown names and fields go to `diagnostics`; then nullptr.
std::unique_ptr<Loss> make_loss(const config::Typed& typed, Diagnostics& diagnostics);

/// Shapes: `output` and `label` of one sample, without the batch; a class number has rank 0, and a
/// class at each position the shape of the output without its last axis.
/// Errors: UserError(config) at `where`, the position of the loss, when the loss cannot compare
/// them.
void check_labels_fit(
    LabelKind kind, const Shape& output, const Shape& label, DType label_dtype, const Where& where);

/// The number of valid class numbers, from 0 on, for an output of this shape; nothing where every
/// number is valid. A loss of classes has them on the last axis.
std::optional<std::int64_t> label_limit(LabelKind kind, const Shape& output);

/// Declares the field `from_logits` of a loss for the results of an activation.
void from_logits_field(config::Fields& f, bool& from_logits, std::string_view activation);

/// Labels as a float32 target of the shape of `like`: one-hot for class numbers when `like` has
/// more than one column. The shapes must fit (check_labels_fit).
graph::Value dense_targets(graph::Builder& b, graph::Value labels, const Shape& like);

/// The class of each row of labels, int32 [rows]: class numbers as they are, of rows of targets the
/// largest one, of single ones 1 from one half on.
graph::Value class_labels(graph::Builder& b, graph::Value labels, const Shape& like);

/// Label smoothing: t (1 - s) + s / classes.
graph::Value smooth_targets(graph::Builder& b,
                            graph::Value targets,
                            double smoothing,
                            double classes);

/// Keras's epsilon.
constexpr double k_epsilon = 1e-7;

/// Probabilities clamped to [k_epsilon, 1 - k_epsilon], so that their logarithm is finite.
graph::Value clip_probabilities(graph::Builder& b, graph::Value p);

}  // namespace halfstep::nn

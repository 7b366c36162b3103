#pragma once
// An optimizer is a plain struct: Keras's fields and a function that emits the nodes that update
// one weight. table.cc lists the entries of all files. Slots are ordinary variables, and every op
// that writes a variable takes `ok`: a step whose `ok` is false changes nothing.

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "config/fields.h"
#include "config/reader.h"
#include "graph/builder.h"
#include "nn/layers/layer.h"

namespace halfstep::nn {

/// The arguments of an optimizer that emits the update of one weight.
class OptimizerContext {
 public:
  graph::Builder& b;
  const Weight& weight;
  graph::Value gradient;       ///< float32, unscaled and clipped, in the weight's shape
  graph::Value learning_rate;  ///< float32 scalar
  graph::Value iteration;      ///< float32 scalar: number of this step, from 1
  graph::Value ok;             ///< bool scalar; invalid when updates are never skipped
  double weight_decay = 0;     ///< w -= weight_decay learning_rate w comes first; 0: no decay

  /// The handle of a slot variable `<weight>/<slot_name>` in the weight's dtype and shape: a slice
  /// where the ranks divide the weight. With `shape`, of that shape and whole on each rank.
  graph::Value slot(std::string_view slot_name,
                    double initial = 0,
                    const std::optional<Shape>& shape = {});
  graph::Value scalar(double value) { return b.scalar(b.dtype(weight.read), value); }
  /// Emits an op that writes variables, with `ok` as its last input where that is valid. An op
  /// with OpTraits::update gets the attribute `weight_decay` and decays the weight itself.
  void update(std::string_view op, std::vector<graph::Value> inputs, graph::Attrs attrs = {});
  /// beta^iteration.
  graph::Value power(double beta);
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  virtual void update(OptimizerContext& c) const = 0;
};

/// The fields that every optimizer has besides its own.
struct OptimizerSpec {
  config::Node learning_rate;  ///< a number or a schedule; see schedule.h
  std::optional<double> clipvalue;
  std::optional<double> clipnorm;
  std::optional<double> global_clipnorm;
  std::optional<double> weight_decay;  ///< absent also where the optimizer has one of its own

  void fields(config::Fields& f);
};

struct OptimizerDef {
  std::string_view type;
  std::string_view doc;
  double default_learning_rate = 0.001;
  void (*fields)(config::Fields& f) = nullptr;
  std::unique_ptr<Optimizer> (*make)(const config::Node& node, Diagnostics& diagnostics) = nullptr;
  bool elementwise = true;       ///< the update of an element of a weight reads no other element
  bool divides_by_rate = false;  ///< a learning rate of 0 gives NaN
};

inline constexpr std::string_view k_weight_decay = "weight_decay";
inline constexpr std::array<std::string_view, 5> k_common_optimizer_keys{
    "learning_rate", "clipvalue", "clipnorm", "global_clipnorm", k_weight_decay};

template <class O>
constexpr OptimizerDef optimizer_def(std::string_view type,
                                     std::string_view doc,
                                     double default_learning_rate,
                                     bool elementwise = true,
                                     bool divides_by_rate = false) {
  class Adapter final : public Optimizer {
   public:
    explicit Adapter(O o) : optimizer_(std::move(o)) {}
    void update(OptimizerContext& c) const override { optimizer_.update(c); }

   private:
    O optimizer_;
  };
  OptimizerDef def{
      type, doc, default_learning_rate, nullptr, nullptr, elementwise, divides_by_rate};
  def.fields = [](config::Fields& f) {
    O optimizer;
    optimizer.fields(f);
  };
  def.make = [](const config::Node& node, Diagnostics& diagnostics) -> std::unique_ptr<Optimizer> {
    O optimizer;
    config::read(node, optimizer, diagnostics, k_common_optimizer_keys);
    return std::make_unique<Adapter>(std::move(optimizer));
  };
  return def;
}

/// All optimizers, alphabetical.
std::span<const OptimizerDef* const> optimizer_table();

/// A configured optimizer with the shared fields.
struct ConfiguredOptimizer {
  const OptimizerDef* def = nullptr;
  std::unique_ptr<Optimizer> optimizer;
  OptimizerSpec spec;
};

/// The optimizer of a config. Problems go to `diagnostics`; then `optimizer` may be null.
ConfiguredOptimizer make_optimizer(const config::Typed& typed, Diagnostics& diagnostics);

}  // namespace halfstep::nn

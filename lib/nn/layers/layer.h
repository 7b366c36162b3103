#pragma once
// The interface of a layer: it emits nodes into a LayerContext.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/batch_share.h"
#include "graph/builder.h"
#include "nn/initializer.h"
#include "nn/regularizer.h"
#include "precision/policy.h"

namespace halfstep::nn {

/// A variable updated by assignment, such as a moving average; written in applied steps only.
struct Assignment {
  graph::Value handle;
  graph::Value value;
  /// Each part or rank has values for its own samples, else 0: the sum is assigned, not the mean.
  bool rows = false;
};

/// A trainable weight, the input of an optimizer.
struct Weight {
  std::string name;
  graph::Value handle;
  graph::Value read;  ///< in the variable's dtype; gradients are taken with respect to it
  /// The variable's dtype, or that of the master that it is a copy of.
  DType updated_in = DType::float32;
  std::optional<graph::Slice> slice = {};  ///< of a master
  graph::Value copy = {};                  ///< of a master: the handle of the whole weight
};

/// The results of a model's forward pass besides its outputs.
struct ModelRecord {
  std::vector<Weight> weights;
  std::vector<Assignment> assignments;
  std::vector<graph::Value> losses;  ///< regularization terms, float32 scalars
};

/// Limits on the sizes in a config, so that element counts fit in 64 bits.
inline constexpr double k_max_units = 1 << 30;
inline constexpr double k_max_window = 1 << 20;
inline constexpr double k_max_elements = 0x1p48;

/// The number of elements of a tensor with these extents; in double, since it may exceed 64 bits.
double count(std::span<const std::int64_t> extents);

/// The use that a layer makes of the masks of its inputs. A mask is a bool for each step of each
/// sample, [batch, steps], false where the step is padding.
enum class MaskUse {
  refused,  ///< an input with a mask is an error: the padding would count
  passed,   ///< each step is computed by itself; the output has the mask of the first input
  used,     ///< the layer reads LayerContext::masks and sets LayerContext::mask
};

/// An output of a layer.
struct LayerOutput {
  graph::Value value;
  graph::Value mask = {};  ///< not valid where there is none
};

/// The services that a layer uses while it emits nodes.
class LayerContext {
 public:
  graph::Builder& b;
  std::string_view name;  ///< path of the layer
  const precision::Policy& policy;
  bool training;
  bool trainable;
  graph::Value ordinal;  ///< int64 scalar that numbers the batches; keys random ops
  std::uint64_t seed;    ///< of the run
  ModelRecord& record;
  std::int64_t first_sample = 0;  ///< of the batch, which the samples of lower ranks precede
  BatchShare share = 0;           ///< the samples, among those of other ranks
  bool sync_batch_norm = false;   ///< moments of batches are those of all ranks
  bool has_masters = false;       ///< weights are copies of masters that the ranks divide
  bool keeps_states = false;      ///< stateful layers keep the states of the last batch
  std::span<const graph::Value> masks = {};  ///< of the inputs; not valid where there is none
  graph::Value mask = {};                    ///< of output 0
  std::vector<LayerOutput> further = {};     ///< outputs 1, 2, ...

  /// A weight in the policy's variable dtype, read and cast to its compute dtype. The regularizer
  /// sees the uncast value; without one, a copy of a master is stored in the compute dtype.
  graph::Value weight(std::string_view weight_name,
                      const Shape& shape,
                      const InitializerSpec& initializer,
                      const std::optional<RegularizerSpec>& regularizer = {});
  /// The same without the cast to the compute dtype.
  graph::Value stored_weight(std::string_view weight_name,
                             const Shape& shape,
                             const InitializerSpec& initializer,
                             const std::optional<RegularizerSpec>& regularizer = {});
  /// The same without the cast to the compute dtype, stored in float32 even under a pure 16-bit
  /// policy: for parameters of normalizations.
  graph::Value float32_weight(std::string_view weight_name,
                              const Shape& shape,
                              const InitializerSpec& initializer,
                              const std::optional<RegularizerSpec>& regularizer = {});
  /// A non-trainable float32 variable; returns its handle.
  graph::Value statistic(std::string_view statistic_name,
                         const Shape& shape,
                         const InitializerSpec& initializer);
  void assign(graph::Value handle, graph::Value value) {
    record.assignments.push_back({handle, value});
  }
  /// The rows of the samples that are built, and the handle, of a float32 state, at first 0: in
  /// training of a variable [batch, width], else of an input [rows, width]. set_state(): the next.
  std::pair<graph::Value, graph::Value> state(std::string_view state_name, std::int64_t width);
  void set_state(graph::Value handle, graph::Value rows);
  void add_loss(graph::Value loss) { record.losses.push_back(loss); }
  /// A random stream of this layer; `which` distinguishes several.
  std::int64_t stream(int which = 0) const;
  /// The mask of an input, not valid where there is none.
  graph::Value mask_of(std::size_t input) const {
    return input < masks.size() ? masks[input] : graph::Value{};
  }
  /// The mask [batch, steps] with axes of 1 behind it, up to `rank` axes.
  graph::Value spread(graph::Value of, std::size_t rank) const;
  DType compute() const { return policy.compute; }  ///< that the layer computes in
  /// Errors: always, UserError(config) at the layer.
  [[noreturn]] void fail(std::string message) const;
};

/// Sets the reason for the dtype of the nodes emitted in this scope ("float32: statistics of a
/// normalization").
class Explain {
 public:
  Explain(graph::Builder& b, std::string reason) : b_(b), before_(b.origin().reason) {
    b.origin().reason = std::move(reason);
  }
  ~Explain() { b_.origin().reason = std::move(before_); }
  Explain(const Explain&) = delete;
  Explain& operator=(const Explain&) = delete;

 private:
  graph::Builder& b_;
  std::string before_;
};

/// The properties of a recurrent layer that a layer around it depends on.
struct Recurrence {
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
};

/// The field of a layer with initial states; the reader of models looks up its names.
void initial_state_field(config::Fields& f, std::vector<std::string>& names);

/// A configured layer.
class Layer {
 public:
  virtual ~Layer() = default;
  /// Returns output 0; further ones go to `c.further`. x: the inputs, then initial states if any.
  virtual graph::Value build(LayerContext& c, std::span<const graph::Value> x) const = 0;
  virtual std::size_t outputs() const { return 1; }
  virtual std::size_t states() const { return 0; }  ///< initial ones that it may be given
  /// For a layer of indices: they must be below this, and are not cast to the compute dtype.
  virtual std::optional<std::int64_t> index_limit() const { return std::nullopt; }
  /// For a recurrent layer.
  virtual std::optional<Recurrence> recurrence() const { return std::nullopt; }
  /// Whether a sample begins with the last state of the one at its position of the batch before.
  virtual bool keeps_state() const { return false; }
  virtual bool masks_zero() const { return false; }  ///< whether index 0 is masked as padding
};

/// Builds a layer on inputs of the dtype that it takes; returns its outputs. Errors:
/// UserError(config) where a mask would be lost.
std::vector<LayerOutput> build_layer(LayerContext& c,
                                     const Layer& layer,
                                     MaskUse use,
                                     std::span<const graph::Value> x);

}  // namespace halfstep::nn

// Recurrent layers. The input projections of all steps are one MatMul; the steps themselves are one
// RNN op (graph/ops/recurrent.cc), so that `explain` lists a layer once and not once a step.

#include <fmt/format.h>

#include <array>

#include "graph/ops/ops.h"
#include "nn/layers/image.h"
#include "nn/layers/random_elements.h"

namespace halfstep::nn {
namespace {

using graph::Value;

enum class Activation { linear, relu, sigmoid, tanh };
constexpr std::array k_activations{
    config::Named{Activation::linear, "linear"},
    config::Named{Activation::relu, "relu"},
    config::Named{Activation::sigmoid, "sigmoid"},
    config::Named{Activation::tanh, "tanh"},
};

/// The op of an activation, as RNN's attributes name it.
std::string op_name(Activation activation) {
  switch (activation) {
    case Activation::linear:
      return "Identity";
    case Activation::relu:
      return "Relu";
    case Activation::sigmoid:
      return "Sigmoid";
    default:
      return "Tanh";
  }
}

/// The properties that distinguish the recurrent layers.
struct Cell {
  std::string_view mode;  ///< RNN's rnn_mode and the layer's type
  std::int64_t gates = 1;
  bool gated = true;    ///< has a recurrent activation
  bool carry = false;   ///< has a second state, c
  bool resets = false;  ///< has a reset gate, before or after the recurrent matmul
};
constexpr Cell k_gru_cell{.mode = "gru", .gates = 3, .resets = true};
constexpr Cell k_lstm_cell{.mode = "lstm", .gates = 4, .carry = true};
constexpr Cell k_simple_rnn_cell{.mode = "simple_rnn", .gated = false};

/// Source: graph/ops/recurrent.cc names the papers; Gal and Ghahramani 2016 for the dropouts.
template <const Cell& cell>
struct Recurrent {
  static constexpr MaskUse k_masks = MaskUse::used;
  std::int64_t units = 0;
  Activation activation = Activation::tanh;
  Activation recurrent_activation = Activation::sigmoid;
  bool use_bias = true;
  bool unit_forget_bias = true;
  bool reset_after = true;
  InitializerSpec kernel_initializer{"glorot_uniform"};
  InitializerSpec recurrent_initializer{"orthogonal"};
  InitializerSpec bias_initializer{"zeros"};
  std::optional<RegularizerSpec> kernel_regularizer;
  std::optional<RegularizerSpec> recurrent_regularizer;
  std::optional<RegularizerSpec> bias_regularizer;
  RandomElements dropout{.rate = 0};
  RandomElements recurrent_dropout{.rate = 0, .which = 1};
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  std::vector<std::string> initial_state;

  void fields(config::Fields& f) {
    f.field("units",
            units,
            {.doc = "Width of the state and of the output. [units]",
             .required = true,
             .min = 1,
             .max = k_max_units});
    f.choice("activation", activation, k_activations, {.doc = "Function of the new state."});
    if (cell.gated) {
      f.choice("recurrent_activation",
               recurrent_activation,
               k_activations,
               {.doc = "Function of the gates."});
    }
    f.field("use_bias", use_bias, {.doc = "Whether a bias is added."});
    if (cell.carry) {
      f.field("unit_forget_bias",
              unit_forget_bias,
              {.doc = "Whether the bias of the forget gate starts at 1 (Jozefowicz et al. 2015)."});
    }
    if (cell.resets) {
      f.field("reset_after",
              reset_after,
              {.doc = "Whether the reset gate is applied to the result of the recurrent matmul, as "
                      "in cuDNN, or to the state that it multiplies (Cho et al. 2014)."});
    }
    initializer_field(
        f, "kernel_initializer", kernel_initializer, "Initial values of the input's kernel.");
    initializer_field(f,
                      "recurrent_initializer",
                      recurrent_initializer,
                      "Initial values of the recurrent kernel.");
    initializer_field(f, "bias_initializer", bias_initializer, "Initial values of the bias.");
    regularizer_field(
        f, "kernel_regularizer", kernel_regularizer, "Penalty on the input's kernel.");
    regularizer_field(
        f, "recurrent_regularizer", recurrent_regularizer, "Penalty on the recurrent kernel.");
    regularizer_field(f, "bias_regularizer", bias_regularizer, "Penalty on the bias.");
    rate_field(f, "dropout", dropout.rate, "an element of the input");
    rate_field(f, "recurrent_dropout", recurrent_dropout.rate, "an element of the state");
    f.field("return_sequences",
            return_sequences,
            {.doc = "Whether the output has the state of every step instead of the last one."});
    f.field(
        "return_state",
        return_state,
        {.doc =
             cell.carry
                 ? "Whether the last state and the last carry are outputs 1 and 2, `name:1` and "
                   "`name:2` in the `from` of other nodes."
                 : "Whether the last state is output 1, `name:1` in the `from` of other nodes."});
    f.field("go_backwards",
            go_backwards,
            {.doc = "Whether the sequence is processed backwards; a sequence of states is then in "
                    "that order, as in Keras."});
    f.field("stateful",
            stateful,
            {.doc = "Whether the initial state of a sample is the last state of the sample at the "
                    "same position of the previous batch, without a gradient; all training batches "
                    "then have the same size."});
    initial_state_field(f, initial_state);
    dropout.seed_field(f);
  }

  void check(Diagnostics& diagnostics, const Where&) const {
    nn::check(kernel_initializer, diagnostics);
    nn::check(recurrent_initializer, diagnostics);
    nn::check(bias_initializer, diagnostics);
  }

  Recurrence recurrence() const { return {return_sequences, return_state, go_backwards}; }
  std::size_t states() const { return cell.carry ? 2 : 1; }
  std::size_t outputs() const { return return_state ? 1 + states() : 1; }
  bool keeps_state() const { return stateful; }

  Value build(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    const bool keeps = stateful && c.keeps_states;
    if (stateful && x.size() > 1) c.fail("takes no initial states: it is stateful");
    std::vector<Value> kept, first{x.begin(), x.end()};
    for (const char* name : {"state", "carry"}) {
      if (!keeps || kept.size() == states()) continue;
      const auto [rows, handle] = c.state(name, units);
      first.push_back(rows);
      kept.push_back(handle);
    }
    const auto [states, last_carry] = recur(c, first);
    const Shape shape = b.shape(states);
    Value last;
    if (return_state || !return_sequences || keeps) {
      const std::int64_t step = go_backwards ? 0 : shape[1] - 1;
      last = b.add("Slice", {states, b.ints({0, step, 0}), b.ints({shape[0], 1, shape[2]})});
      last = graph::ops::reshape(b, last, {shape[0], shape[2]});
    }
    if (keeps) c.set_state(kept[0], b.cast(last, DType::float32));
    if (keeps && cell.carry) c.set_state(kept[1], last_carry);
    if (return_state) c.further.push_back({last});
    if (return_state && cell.carry) c.further.push_back({b.cast(last_carry, c.compute())});
    if (return_sequences) {
      c.mask = c.mask_of(0);
      if (go_backwards && c.mask.valid()) c.mask = b.add("ReverseV2", {c.mask, b.ints({1})});
      return go_backwards ? b.add("ReverseV2", {states, b.ints({1})}) : states;
    }
    return last;
  }

 private:
  static void rate_field(config::Fields& f,
                         std::string_view name,
                         double& rate,
                         std::string_view of) {
    f.field(name,
            rate,
            {.doc = fmt::format("Probability with which {} is zeroed in training, by one draw for "
                                "all steps and gates. [fraction]",
                                of),
             .min = 0,
             .max = 1});
  }

  /// The states of all steps, each at the position of its input, and the carry after the last one.
  std::pair<Value, Value> recur(LayerContext& c, std::span<const Value> x) const {
    graph::Builder& b = c.b;
    const Shape in = sequence_shape(c, x[0]);
    const Shape state{in[0], units};
    const std::int64_t columns = cell.gates * units;
    const auto named = [](std::string_view weight) {
      return fmt::format("{}_cell/{}", cell.mode, weight);
    };
    const Value kernel =
        c.weight(named("kernel"), {in[2], columns}, kernel_initializer, kernel_regularizer);
    const Value recurrent_kernel = c.weight(
        named("recurrent_kernel"), {units, columns}, recurrent_initializer, recurrent_regularizer);
    const Value input = dropout.drop(c, x[0], {in[0], 1, in[2]});
    Value projections = b.add("MatMul",
                              {graph::ops::reshape(b, input, {in[0] * in[1], in[2]}), kernel},
                              {},
                              "projections");
    // One of the projections, one of the recurrent matmul.
    const bool two_biases = cell.resets && reset_after;
    Value bias = b.fill(c.compute(), {columns}, 0);
    if (use_bias) {
      const Shape shape = two_biases ? Shape{2, columns} : Shape{columns};
      InitializerSpec initializer = bias_initializer;
      if (cell.carry && unit_forget_bias) {
        initializer.ones_begin = units;
        initializer.ones_end = 2 * units;
      }
      bias = c.weight(named("bias"), shape, initializer, bias_regularizer);
    }
    if (use_bias && two_biases) {
      const auto row = [&](std::int64_t i) {
        const Value one = b.add("Slice", {bias, b.ints({i, 0}), b.ints({1, columns})});
        return graph::ops::reshape(b, one, {columns});
      };
      projections = b.add("BiasAdd", {projections, row(0)});
      bias = row(1);
    }
    std::vector<Value> inputs{graph::ops::reshape(b, projections, {in[0], in[1], columns}),
                              recurrent_kernel,
                              bias,
                              first_state(c, x, 1, state, c.compute()),
                              cell.carry ? first_state(c, x, 2, state, DType::float32)
                                         : b.fill(DType::float32, Shape{0}, 0)};
    const bool drops = c.training && recurrent_dropout.rate > 0;
    if (drops || c.mask_of(0).valid()) {
      RandomElements drop = recurrent_dropout;
      drop.seed = dropout.seed;
      const Value ones = b.fill(c.compute(), state, 1);
      inputs.push_back(drops ? drop.drop(c, ones, state) : ones);
    }
    if (c.mask_of(0).valid()) inputs.push_back(c.mask_of(0));
    const int node =
        b.add_node("RNN",
                   std::move(inputs),
                   {{"rnn_mode", std::string(reset_after ? cell.mode : "gru_reset_before")},
                    {"activation", op_name(activation)},
                    {"recurrent_activation", op_name(recurrent_activation)},
                    {"go_backwards", go_backwards},
                    {"is_training", c.training}});
    return {{node, 0}, {node, 1}};
  }

  /// Input `i` of the layer where there is one, an initial state, else zeros.
  Value first_state(LayerContext& c,
                    std::span<const Value> x,
                    std::size_t i,
                    const Shape& shape,
                    DType dtype) const {
    if (i >= x.size()) return c.b.fill(dtype, shape, 0);
    if (c.b.shape(x[i]) != shape) {
      const Shape have = c.b.shape(x[i]);
      c.fail(fmt::format("initial state {} must be a sample of shape [{}], got [{}]",
                         i,
                         units,
                         fmt::join(have.dims().subspan(1), ", ")));
    }
    return c.b.cast(x[i], dtype);
  }
};

constexpr std::string_view k_numerics =
    "Matmuls, gates and the carry of an lstm are computed in float32 under the 16-bit policies, "
    "and the state is rounded to the compute dtype after each step; Keras rounds every "
    "intermediate result. A recurrent_dropout has one mask for all gates. Masked steps keep the "
    "state. The states of a stateful layer are 0 before the first step and, with "
    "training.reset_states, before each epoch; a skipped step does not change them, a checkpoint "
    "stores them, and microbatches and ranks update the rows of their samples. Evaluation and "
    "prediction have separate states, 0 before the first batch of a pass and, where "
    "data.shuffle is on, before every batch.";

}  // namespace

extern const LayerDefs k_recurrent_layers{
    layer_def<Recurrent<k_gru_cell>>(
        "gru",
        "Gated recurrent units (Cho et al. 2014).",
        {.max_states = 1,
         .example = "{units: 4}",
         .example_input = "[5, 3]",
         .shapes =
             "x [batch, steps, channels], y [batch, units] or [batch, steps, units], states "
             "[batch, units]; kernel [channels, 3 * units], recurrent_kernel [units, 3 * units], "
             "bias [2, 3 * units], with reset_after: false [3 * units], blocks of columns in the "
             "order update, reset, candidate",
         .numerics = k_numerics}),
    layer_def<Recurrent<k_lstm_cell>>(
        "lstm",
        "Long short-term memory (Hochreiter and Schmidhuber 1997, Gers et al. 2000).",
        {.max_states = 2,
         .example = "{units: 4}",
         .example_input = "[5, 3]",
         .shapes =
             "x [batch, steps, channels], y [batch, units] or [batch, steps, units], states "
             "[batch, units]; kernel [channels, 4 * units], recurrent_kernel [units, 4 * units], "
             "bias [4 * units], blocks of columns in the order input, forget, candidate, output",
         .numerics = k_numerics}),
    layer_def<Recurrent<k_simple_rnn_cell>>(
        "simple_rnn",
        "h = activation(x kernel + h recurrent_kernel + bias) at each step (Elman 1990).",
        {.max_states = 1,
         .example = "{units: 4}",
         .example_input = "[5, 3]",
         .shapes =
             "x [batch, steps, channels], y [batch, units] or [batch, steps, units], states "
             "[batch, "
             "units]; kernel [channels, units], recurrent_kernel [units, units], bias [units]",
         .numerics = k_numerics}),
};

}  // namespace halfstep::nn

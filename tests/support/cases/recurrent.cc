#include "support/op_cases.h"

namespace halfstep::testing {
namespace {

struct Layer {
  std::string_view name;
  std::string_view mode = "lstm";
  std::int64_t batch = 3, steps = 4, units = 5;
  bool backwards = false;
  bool masked = false;
  std::string_view activation = "Tanh";
  std::string_view recurrent_activation = "Sigmoid";
  bool skips = false;  ///< some steps are left out
};

constexpr Layer k_layers[] = {
    {"lstm"},
    {"gru", "gru"},
    {"simple", "simple_rnn"},
    {"lstm, backwards", "lstm", 2, 5, 3, true},
    {"gru, backwards", "gru", 2, 5, 3, true},
    {"simple, backwards", "simple_rnn", 2, 5, 3, true},
    {"lstm, mask", "lstm", 3, 4, 5, false, true},
    {"gru, mask", "gru", 3, 4, 5, true, true},
    {"simple, mask", "simple_rnn", 3, 4, 5, false, true},
    {"lstm, one step", "lstm", 4, 1, 3},
    {"gru, one unit", "gru", 1, 3, 1},
    {"lstm, relu", "lstm", 3, 2, 4, false, false, "Relu", "Sigmoid"},
    {"gru, linear", "gru", 3, 2, 4, false, false, "Identity", "Sigmoid"},
    {"gru, sigmoid", "gru", 3, 2, 4, false, false, "Sigmoid", "Tanh"},
    {"simple, relu", "simple_rnn", 3, 2, 4, false, false, "Relu"},
    {"simple, no rows", "simple_rnn", 0, 2, 4},
    {"lstm, skips", "lstm", 3, 4, 5, false, true, "Tanh", "Sigmoid", true},
    {"gru, skips", "gru", 3, 5, 4, true, true, "Tanh", "Sigmoid", true},
    {"simple, skips", "simple_rnn", 3, 4, 5, false, true, "Tanh", "Sigmoid", true},
    {"lstm, panels, skips", "lstm", 37, 3, 33, true, true, "Tanh", "Sigmoid", true},
    {"reset before", "gru_reset_before"},
    {"reset before, backwards", "gru_reset_before", 2, 5, 3, true},
    {"reset before, mask", "gru_reset_before", 3, 4, 5, false, true},
    {"reset before, linear", "gru_reset_before", 3, 2, 4, false, false, "Identity", "Tanh"},
    {"reset before, relu", "gru_reset_before", 1, 3, 1, false, false, "Relu", "Relu"},
    {"reset before, skips", "gru_reset_before", 3, 5, 4, true, true, "Tanh", "Sigmoid", true},
    {"reset before, panels", "gru_reset_before", 37, 3, 40, true, true, "Tanh", "Sigmoid", true},
    // More than a panel of 32 samples, and units on both sides of a block of 32.
    {"lstm, panels", "lstm", 37, 3, 33},
    {"gru, panels", "gru", 70, 2, 40},
    // Units by eight: a GPU computes all steps in one launch, above 128 samples four in a block.
    {"lstm, eights", "lstm", 3, 4, 8},
    {"lstm, eights, skips", "lstm", 2, 4, 24, true, true, "Tanh", "Sigmoid", true},
    {"lstm, blocks", "lstm", 131, 2, 8, false, true},
    {"lstm, wide", "lstm", 2, 2, 128},
    {"gru, eights", "gru", 3, 4, 24, true, true},
    {"gru, blocks, skips", "gru", 131, 2, 8, false, true, "Tanh", "Sigmoid", true},
    {"reset before, eights, skips",
     "gru_reset_before",
     2,
     4,
     16,
     true,
     true,
     "Tanh",
     "Sigmoid",
     true},
    {"reset before, blocks", "gru_reset_before", 131, 2, 8},
    {"simple, eights", "simple_rnn", 1, 3, 8, false, true},
    {"simple, wide", "simple_rnn", 2, 2, 256},
    // A reduction in two kc blocks; small otherwise, for processors that are emulated.
    {"simple, deep", "simple_rnn", 2, 1, 400},
};

std::int64_t gates(std::string_view mode) {
  return mode == "lstm" ? 4 : mode.starts_with("gru") ? 3 : 1;
}

}  // namespace

std::vector<OpCase> recurrent_cases() {
  std::vector<OpCase> cases;
  for (const Layer& l : k_layers) {
    const bool lstm = l.mode == "lstm";
    const std::int64_t columns = gates(l.mode) * l.units;
    const double scale = l.units > 100 ? 0.125 : 1;
    const Shape sequence{l.batch, l.steps, l.units}, state{l.batch, l.units};
    const Shape saved{l.batch, l.steps, 4 * l.units}, none{0};
    const auto attrs = [&](bool training) {
      graph::Attrs a{{"rnn_mode", std::string(l.mode)},
                     {"activation", std::string(l.activation)},
                     {"recurrent_activation", std::string(l.recurrent_activation)},
                     {"go_backwards", l.backwards}};
      if (!training) a.set("is_training", false);
      return a;
    };
    // The carry is float32 whatever the dtype under test is; gradients need it in float64.
    const auto add = [&](std::string_view what, bool training, DType carry) {
      const bool exact = carry == DType::float64;
      OpCase c{.name = fmt::format("RNN/{}{}", l.name, what),
               .op = "RNN",
               .attrs = attrs(training),
               .inputs = {uniform({l.batch, l.steps, columns}),
                          uniform({l.units, columns}, -0.5 * scale, 0.5 * scale),
                          uniform({columns}, -0.5, 0.5),
                          uniform(state, -1, 1),
                          typed(uniform(lstm ? state : none, -1, 1), carry)},
               .terms = 8 * l.steps + l.units,
               .magnitude = 4,
               .rounds_inside = true,
               .check_gradient = exact && l.units < 32};
      if (l.masked) {
        c.no_gradient = {5};
        c.inputs.push_back(whole(state, 0, 3));
      }
      if (l.skips) c.inputs.push_back(flags({l.batch, l.steps}));
      if (lstm) c.differentiated = {0, 1};
      if (exact) c.dtypes = DTypeSet{DType::float64};
      cases.push_back(std::move(c));
    };
    add("", true, DType::float32);
    add(", inference", false, DType::float32);
    add(", float64", true, DType::float64);
    OpCase c{.name = fmt::format("RNNGrad/{}", l.name),
             .op = "RNNGrad",
             .attrs = attrs(true),
             .inputs = {uniform(sequence, -1, 1),
                        typed(uniform(lstm ? state : none, -1, 1), DType::float32),
                        uniform({l.units, columns}, -0.5 * scale, 0.5 * scale),
                        uniform(state, -1, 1),
                        typed(uniform(lstm ? state : none, -1, 1), DType::float32),
                        uniform(sequence, -1, 1),
                        uniform(l.mode == "simple_rnn" ? none : saved, 0, 1),
                        typed(uniform(lstm ? sequence : none, -1, 1), DType::float32)},
             .terms = 8 * l.steps + l.units,
             .magnitude = 16,
             .rounds_inside = true,
             .check_gradient = false};
    if (l.masked) c.inputs.push_back(whole(state, 0, 3));
    if (l.skips) c.inputs.push_back(flags({l.batch, l.steps}));
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace halfstep::testing

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <ostream>
#include <string_view>

#include "core/parallel.h"
#include "fixture.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using graph::Attrs;
using graph::Value;
using Ints = std::vector<std::int64_t>;

bool all_finite(std::initializer_list<const Tensor*> tensors) {
  Fixture fixture;
  std::vector<Value> inputs;
  for (const Tensor* t : tensors) inputs.push_back(fixture.input(t->clone()));
  return values(fixture.evaluate(fixture.b().add("AllFinite", inputs)))[0] != 0;
}

TEST_CASE("all finite: finds one NaN or infinity anywhere, in every dtype") {
  const int before = thread_count();
  set_thread_count(3);
  for (const DType dtype : k_floating) {
    CAPTURE(name(dtype));
    for (const std::int64_t n : {1, 5, 300'000}) {
      CAPTURE(n);
      const double largest = max_finite(dtype), least = smallest(dtype);
      std::vector<double> x(static_cast<std::size_t>(n), largest);
      if (n > 1) x[1] = -largest, x[2] = least, x[3] = -0.0;
      const Tensor good = tensor(dtype, {n}, x);
      CHECK(all_finite({&good}));
      for (const double bad : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
        for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
          Tensor spoiled = good.clone();
          set(spoiled, at, bad);
          CHECK(!all_finite({&spoiled}));
          CHECK(!all_finite({&good, &spoiled}));
          CHECK(!all_finite({&spoiled, &good}));
        }
      }
    }
  }
  set_thread_count(before);
}

TEST_CASE("all finite: looks at tensors of several dtypes; whole numbers are always finite") {
  const Tensor whole = tensor(DType::int32, {2}, {0x7f800000, -1});
  const Tensor good = tensor(DType::float16, {2, 1}, {1, 2});
  const Tensor empty(DType::float32, {0}), bad = tensor(DType::bfloat16, {}, {HUGE_VAL});
  CHECK(all_finite({&whole, &good, &empty}));
  CHECK(!all_finite({&whole, &good, &bad}));
}

struct Trace {
  std::string_view name;
  Attrs attrs;
  double start;
  std::string_view steps;  ///< '+' a good step, '-' a bad one
  std::vector<double> scales;
  std::vector<double> good_steps{};  ///< empty: not looked at
  int good_before = 0;
};

std::vector<Trace> traces() {
  const double largest = 0x1p127;
  const Attrs tf{{"growth_steps", std::int64_t{3}}};
  Attrs keras3 = tf;
  keras3.set("min_scale", 0.0);
  keras3.set("grow_on_equal", true);
  keras3.set("guard", false);
  Attrs torch = tf;
  torch.set("min_scale", 0.0);
  torch.set("grow_on_equal", true);
  const auto with = [](Attrs attrs, std::string_view name, graph::AttrValue value) {
    attrs.set(name, std::move(value));
    return attrs;
  };
  return {
      {"TensorFlow: grows on every third good step",
       tf,
       8,
       "+++++++",
       {8, 8, 16, 16, 16, 32, 32},
       {1, 2, 0, 1, 2, 0, 1}},
      {"TensorFlow: a bad step halves and starts the count again",
       tf,
       8,
       "++-+++-",
       {8, 8, 4, 4, 4, 8, 4},
       {1, 2, 0, 1, 2, 0, 0}},
      {"TensorFlow: the floor is one", tf, 4, "-----", {2, 1, 1, 1, 1}},
      {"TensorFlow: a start below one is lifted by the first bad step",
       tf,
       0.25,
       "+--+++",
       {0.25, 1, 1, 1, 1, 2}},
      {"TensorFlow: a growth past float32 keeps the scale and resets the count",
       tf,
       largest,
       "++++-",
       {largest, largest, largest, largest, largest / 2},
       {1, 2, 0, 1, 0}},
      {"TensorFlow: a counter above the limit grows at once", tf, 8, "++", {16, 16}, {0, 1}, 7},
      {"TensorFlow: growth_steps 0 grows on every step",
       with(tf, "growth_steps", std::int64_t{0}),
       8,
       "++-",
       {16, 32, 16}},
      {"TensorFlow: factors of its own",
       with(with(tf, "growth_factor", 4.0), "backoff_factor", 0.25),
       8,
       "+++-",
       {8, 8, 32, 8}},
      {"Keras 3: grows on every third good step",
       keras3,
       8,
       "+++++++",
       {8, 8, 16, 16, 16, 32, 32},
       {1, 2, 0, 1, 2, 0, 1}},
      {"Keras 3: no floor", keras3, 2, "----", {1, 0.5, 0.25, 0.125}},
      {"Keras 3: a growth past float32 is infinite for ever",
       keras3,
       largest,
       "+++-+-",
       {largest, largest, HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL},
       {1, 2, 0, 0, 1, 0}},
      {"Keras 3: a counter above the limit never grows until a bad step",
       keras3,
       8,
       "+++-+++",
       {8, 8, 8, 4, 4, 4, 8},
       {8, 9, 10, 0, 1, 2, 0},
       7},
      {"Keras 3: growth_steps 0 never grows",
       with(keras3, "growth_steps", std::int64_t{0}),
       8,
       "+++",
       {8, 8, 8}},
      {"PyTorch: no floor", torch, 1, "--", {0.5, 0.25}},
      {"PyTorch: a growth past float32 keeps the scale and resets the count",
       torch,
       largest,
       "+++",
       {largest, largest, largest},
       {1, 2, 0}},
      {"PyTorch: a counter above the limit never grows until a bad step",
       torch,
       8,
       "++-+++",
       {8, 8, 4, 4, 4, 8},
       {},
       5},
      {"a largest scale is not passed",
       with(tf, "max_scale", 16.0),
       8,
       "++++++",
       {8, 8, 16, 16, 16, 16},
       {1, 2, 0, 1, 2, 0}},
      {"a floor of its own", with(tf, "min_scale", 4.0), 8, "---", {4, 4, 4}},
      {"hysteresis 2: every second bad step counts",
       with(tf, "hysteresis", std::int64_t{2}),
       64,
       "-+-+--",
       {64, 64, 32, 32, 32, 16},
       {0, 1, 0, 1, 0, 0}},
      {"hysteresis 2: a growth forgives a bad step",
       with(tf, "hysteresis", std::int64_t{2}),
       64,
       "-+++-+-",
       {64, 64, 64, 128, 128, 128, 64}},
      {"hysteresis 3: good steps short of a growth forgive nothing",
       with(tf, "hysteresis", std::int64_t{3}),
       64,
       "-++-++-",
       {64, 64, 64, 64, 64, 64, 32}},
  };
}

TEST_CASE("loss scale: follows the rule of each system, step by step") {
  for (const Trace& trace : traces()) {
    CAPTURE(trace.name);
    Fixture fixture;
    const auto hysteresis = static_cast<double>(trace.attrs.get_or<std::int64_t>("hysteresis", 1));
    const Value scale = fixture.variable("scale", tensor(DType::float32, {}, {trace.start}));
    const Value good = fixture.variable(
        "good", tensor(DType::int32, {}, {static_cast<double>(trace.good_before)}));
    const Value left = fixture.variable("left", tensor(DType::int32, {}, {hysteresis}));
    const Value ok = fixture.input(tensor(DType::boolean, {}, {1}));
    fixture.b().add_node("UpdateLossScale", {scale, good, left, ok}, trace.attrs);
    std::vector<double> scales, counts;
    for (char step : trace.steps) {
      *fixture.held(ok).as<bool>() = step == '+';
      fixture.run();
      scales.push_back(values(fixture.held(scale))[0]);
      counts.push_back(values(fixture.held(good))[0]);
    }
    CHECK(scales == trace.scales);
    if (!trace.good_steps.empty()) CHECK(counts == trace.good_steps);
  }
}

TEST_CASE("loss scale: 17 bad steps take Keras 3 from 2^15 to a quarter") {
  Fixture fixture;
  const Value scale = fixture.variable("scale", tensor(DType::float32, {}, {32768}));
  const Value good = fixture.variable("good", tensor(DType::int32, {}, {0}));
  const Value left = fixture.variable("left", tensor(DType::int32, {}, {1}));
  fixture.b().add_node("UpdateLossScale",
                       {scale, good, left, fixture.input(tensor(DType::boolean, {}, {0}))},
                       {{"min_scale", 0.0}});
  for (int i = 0; i < 17; ++i) fixture.run();
  CHECK(values(fixture.held(scale))[0] == 0.25);
}

double learning_rate(std::int64_t step, Attrs attrs) {
  Fixture fixture;
  const Value at = fixture.input(tensor(DType::int64, {}, {static_cast<double>(step)}));
  return values(fixture.evaluate(fixture.b().add("LearningRate", {at}, std::move(attrs))))[0];
}

Attrs schedule(std::string kind, double base, std::vector<graph::Attrs::Entry> more = {}) {
  Attrs attrs{{"kind", std::move(kind)}, {"base", base}};
  for (const auto& [key, value] : more) attrs.set(key, value);
  return attrs;
}

TEST_CASE("learning rate: the schedules are Keras's") {
  struct Row {
    std::string_view name;
    Attrs attrs;
    std::int64_t step;
    double want;
  };
  const std::int64_t ten = 10;
  const Attrs pieces =
      schedule("piecewise_constant",
               0,
               {{"boundaries", Ints{3, 5}}, {"values", std::vector<double>{1.0, 0.5, 0.125}}});
  const Attrs exponential =
      schedule("exponential_decay", 0.5, {{"decay_steps", ten}, {"decay_rate", 0.25}});
  Attrs stairs = exponential;
  stairs.set("staircase", true);
  const Attrs inverse =
      schedule("inverse_time_decay", 0.5, {{"decay_steps", ten}, {"decay_rate", 3.0}});
  Attrs inverse_stairs = inverse;
  inverse_stairs.set("staircase", true);
  const Attrs cosine = schedule("cosine_decay", 2, {{"decay_steps", ten}, {"alpha", 0.25}});
  // Keras's CosineDecayRestarts(2, 10, t_mul=2, m_mul=0.5, alpha=0.25): periods from 0, 10, 30, 70.
  const Attrs restarts =
      schedule("cosine_decay_restarts",
               2,
               {{"decay_steps", ten}, {"t_mul", 2.0}, {"m_mul", 0.5}, {"alpha", 0.25}});
  const Attrs equal_periods =
      schedule("cosine_decay_restarts", 2, {{"decay_steps", ten}, {"m_mul", 0.5}});
  const Attrs line = schedule("polynomial_decay", 1, {{"decay_steps", ten}, {"end", 0.5}});
  const Attrs square =
      schedule("polynomial_decay", 1, {{"decay_steps", ten}, {"end", 0.5}, {"power", 2.0}});
  Attrs cycle = line;
  cycle.set("cycle", true);
  Attrs warm = cosine;  // Keras's CosineDecay(0.5, 10, alpha=0.25, warmup_target=2, warmup_steps=4)
  warm.set("warmup_steps", std::int64_t{4});
  warm.set("warmup_start", 0.5);
  warm.set("warmup_target", 2.0);
  const double pi = std::numbers::pi;
  const Row rows[] = {
      {"constant", schedule("constant", 0.001), 123456789, 0.001},
      {"pieces at 0", pieces, 0, 1},
      {"pieces at a boundary", pieces, 3, 1},
      {"pieces after a boundary", pieces, 4, 0.5},
      {"pieces at the last boundary", pieces, 5, 0.5},
      {"pieces at the end", pieces, 600, 0.125},
      {"exponential at 0", exponential, 0, 0.5},
      {"exponential halfway", exponential, 5, 0.25},
      {"exponential beyond", exponential, 25, 0.5 * std::pow(0.25, 2.5)},
      {"exponential stairs", stairs, 9, 0.5},
      {"exponential second stair", stairs, 19, 0.125},
      {"inverse time", inverse, 5, 0.5 / 2.5},
      {"inverse time stairs", inverse_stairs, 19, 0.125},
      {"cosine at 0", cosine, 0, 2},
      {"cosine at a third", cosine, 3, 2 * (0.75 * 0.5 * (1 + std::cos(pi * 0.3)) + 0.25)},
      {"cosine halfway", cosine, 5, 1.25},
      {"cosine at the end", cosine, 10, 0.5},
      {"cosine beyond", cosine, 11, 0.5},
      {"restarts at 0", restarts, 0, 2},
      {"restarts in the first period", restarts, 5, 1.25},
      {"restarts at the second period", restarts, 10, 2 * (0.75 * 0.5 + 0.25)},
      {"restarts in the second period", restarts, 20, 2 * (0.75 * 0.25 + 0.25)},
      {"restarts at the third period", restarts, 30, 2 * (0.75 * 0.25 + 0.25)},
      {"restarts at the fourth period", restarts, 70, 2 * (0.75 * 0.125 + 0.25)},
      {"restarts of equal periods", equal_periods, 35, 2 * 0.125 * 0.5},
      {"line halfway", line, 5, 0.75},
      {"line beyond", line, 50, 0.5},
      {"square halfway", square, 5, 0.5 + 0.5 * 0.25},
      {"cycle at 0", cycle, 0, 1},
      {"cycle at its end", cycle, 10, 0.5},
      {"cycle in the second round", cycle, 15, 0.5 * (1 - 15.0 / 20) + 0.5},
      {"cycle at the second end", cycle, 20, 0.5},
      {"warm-up at 0", warm, 0, 0.5},
      {"warm-up halfway", warm, 2, 1.25},
      {"warm-up done", warm, 4, 2},
      {"after the warm-up", warm, 9, 1.25},
      {"after all", warm, 14, 0.5},
      {"long after all", warm, 15, 0.5},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(std::abs(learning_rate(row.step, row.attrs) - row.want) <=
          rounding(DType::float32, row.want) + 16 * epsilon(DType::float64));
  }
}

TEST_CASE("learning rate: steps past the exact numbers of float32 count") {
  const Attrs attrs =
      schedule("polynomial_decay", 1, {{"decay_steps", std::int64_t{1} << 25}, {"end", 0.0}});
  const double a = learning_rate((std::int64_t{1} << 25) - 1, attrs);
  CHECK(a == 0x1p-25);
}

TEST_CASE("learning rate: schedules that cannot be are refused") {
  CHECK_THROWS_WITH_AS(learning_rate(0, schedule("linear", 1)),
                       doctest::Contains("there is no learning rate schedule 'linear'"),
                       UserError);
  CHECK_THROWS_AS(learning_rate(0, schedule("cosine_decay", 1)), UserError);
  CHECK_THROWS_AS(
      learning_rate(
          0,
          schedule("cosine_decay_restarts", 1, {{"decay_steps", std::int64_t{1}}, {"t_mul", 0.5}})),
      UserError);
  CHECK_THROWS_AS(learning_rate(0, schedule("piecewise_constant", 1, {{"boundaries", Ints{3}}})),
                  UserError);
}

}  // namespace
}  // namespace halfstep::testing

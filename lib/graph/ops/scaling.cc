// The finite check, norms of gradients, the loss scale that follows from it, and the learning rate.
//
// AllFinite: whether all elements of all values are finite; with `unscaled` the last value is one
// float32 number, and the others are checked after multiplication by it in float32, or with
// `reciprocal` by 1 / it, rounded to float32.
//
// SquaredNorms: the sum of the squares of each value's elements, in float32, in any order; with
// `unscaled` the last value is one float32 number, by which the others are multiplied before.
//
// UpdateLossScale, with good = good_steps before the step:
//   ok:  if good + 1 >= growth_steps (== with grow_on_equal): scale *= growth_factor, good = 0 and
//        hysteresis_left = hysteresis; otherwise good += 1. With `guard` a growth that overflows
//        float32 or passes max_scale (0: no limit) keeps the scale, and still resets the counters.
//   not: good = 0 and hysteresis_left -= 1; when that reaches 0, scale = max(scale *
//        backoff_factor, min_scale) and hysteresis_left = hysteresis.
// So the scale falls on every `hysteresis`-th bad step since it last changed or could have grown.
// min_scale is a floor that also lifts a scale below it; 0 means none. Lowering may add a counter
// of steps: counter += 1 where ok, and in each step with `counts_all`.
//
// LearningRate, at `step` updates done, with t = step - warmup_steps from the end of the warm-up
// on:
//   warm-up                   warmup_start + (warmup_target - warmup_start) * step / warmup_steps
//   constant                  base
//   piecewise_constant        values[i] for the first i with t <= boundaries[i], else the last one
//   exponential_decay         base * decay_rate^p,  p = t / decay_steps (floored if staircase)
//   inverse_time_decay        base / (1 + decay_rate * p)
//   cosine_decay              base * ((1 - alpha) * (1 + cos(pi * min(p, 1))) / 2 + alpha)
//   cosine_decay_restarts     base * ((1 - alpha) * m_mul^i * (1 + cos(pi * q)) / 2 + alpha)
//                             q: the completed part of period i of decay_steps * t_mul^i steps
//   polynomial_decay          (base - end) * (1 - min(p, 1))^power + end; with `cycle` decay_steps
//                             is rounded up to a multiple that covers t instead of capping p
// Source: Keras 3, keras.optimizers.schedules. Keras's CosineDecay with warmup_target has
// warmup_start = its initial_learning_rate and base = warmup_target.

#include "graph/ops/scaling.h"

#include <fmt/core.h>

#include <array>

#include "graph/ops/ops.h"

namespace halfstep::graph::ops {
namespace {

/// By the number of the ScheduleKind.
constexpr std::array<std::string_view, 7> k_schedules{"constant",
                                                      "piecewise_constant",
                                                      "exponential_decay",
                                                      "cosine_decay",
                                                      "cosine_decay_restarts",
                                                      "inverse_time_decay",
                                                      "polynomial_decay"};

float real(const Attrs& attrs, std::string_view name) {
  return static_cast<float>(attrs.get<double>(name));
}

void expect_scalar(const InferContext& c, std::size_t i) {
  if (c.input(i).shape.elements() == 1) return;
  throw ShapeError(fmt::format("input {} of {} must be one number, got shape {}",
                               i,
                               c.node.op,
                               to_string(c.input(i).shape)));
}

std::vector<Shape> infer_all_finite(const InferContext& c) {
  if (c.node.attrs.get<bool>("unscaled")) expect_scalar(c, c.inputs() - 1);
  return {Shape{}};
}

std::vector<Shape> infer_squared_norms(const InferContext& c) {
  const bool unscaled = c.node.attrs.get<bool>("unscaled");
  if (unscaled) expect_scalar(c, c.inputs() - 1);
  const std::size_t values = c.inputs() - (unscaled ? 1 : 0);
  const auto& dtypes = c.node.attrs.get<std::vector<DType>>("Tout");
  if (dtypes != std::vector<DType>(values, DType::float32)) {
    throw ShapeError(fmt::format("{} values have as many norms in float32", values));
  }
  return std::vector<Shape>(values);
}

std::vector<Shape> infer_update_loss_scale(const InferContext& c) {
  constexpr std::array k_wanted{DType::float32, DType::int32, DType::int32};
  for (std::size_t i = 0; i < k_wanted.size(); ++i) {
    const Attrs& handle = c.producer(i).attrs;
    const DType dtype = handle.get<DType>("dtype");
    if (dtype != k_wanted[i] || handle.get<Shape>("shape").elements() != 1) {
      throw ShapeError(fmt::format("'{}' must be one {}, got {} {}",
                                   c.node.def->inputs[i].name,
                                   name(k_wanted[i]),
                                   name(dtype),
                                   to_string(handle.get<Shape>("shape"))));
    }
  }
  expect_scalar(c, 3);
  if (c.inputs() > 4 && c.producer(4).attrs.get<DType>("dtype") != DType::int64) {
    throw ShapeError("a counter must be int64");
  }
  return {};
}

std::vector<Shape> infer_learning_rate(const InferContext& c) {
  expect_scalar(c, 0);
  const Attrs& attrs = c.node.attrs;
  const std::string& name = attrs.get<std::string>("kind");
  const auto kind = schedule_named(name);
  if (!kind) throw ShapeError(fmt::format("there is no learning rate schedule '{}'", name));
  const auto& boundaries = attrs.get<std::vector<std::int64_t>>("boundaries");
  const auto& values = attrs.get<std::vector<double>>("values");
  const bool pieces = kind == ScheduleKind::piecewise_constant;
  if (pieces && values.size() != boundaries.size() + 1) {
    throw ShapeError(
        fmt::format("{} boundaries separate {} values", boundaries.size(), values.size()));
  }
  if (!pieces && kind != ScheduleKind::constant && attrs.get<std::int64_t>("decay_steps") < 1) {
    throw ShapeError("decay_steps must be at least 1");
  }
  if (!(attrs.get<double>("t_mul") >= 1)) throw ShapeError("t_mul must be at least 1");
  return {Shape{}};
}

}  // namespace

LossScaleRule::LossScaleRule(const Attrs& attrs)
    : growth_factor(real(attrs, "growth_factor")),
      backoff_factor(real(attrs, "backoff_factor")),
      min_scale(real(attrs, "min_scale")),
      max_scale(real(attrs, "max_scale")),
      growth_steps(attrs.get<std::int64_t>("growth_steps")),
      hysteresis(static_cast<std::int32_t>(attrs.get<std::int64_t>("hysteresis"))),
      grow_on_equal(attrs.get<bool>("grow_on_equal")),
      guard(attrs.get<bool>("guard")),
      counts_all(attrs.get<bool>("counts_all")) {}

std::optional<ScheduleKind> schedule_named(std::string_view name) {
  const auto* found = std::ranges::find(k_schedules, name);
  if (found == k_schedules.end()) return std::nullopt;
  return static_cast<ScheduleKind>(found - k_schedules.begin());
}

Schedule::Schedule(const Attrs& attrs)
    : kind(schedule_named(attrs.get<std::string>("kind")).value()),
      base(attrs.get<double>("base")),
      decay_rate(attrs.get<double>("decay_rate")),
      alpha(attrs.get<double>("alpha")),
      t_mul(attrs.get<double>("t_mul")),
      m_mul(attrs.get<double>("m_mul")),
      end(attrs.get<double>("end")),
      power(attrs.get<double>("power")),
      warmup_start(attrs.get<double>("warmup_start")),
      warmup_target(attrs.get<double>("warmup_target")),
      decay_steps(attrs.get<std::int64_t>("decay_steps")),
      warmup_steps(attrs.get<std::int64_t>("warmup_steps")),
      staircase(attrs.get<bool>("staircase")),
      cycle(attrs.get<bool>("cycle")) {}

std::vector<OpDef> scaling_ops() {
  return {
      define("AllFinite",
             "values: Tin -> ok: bool",
             "Tin: list(type), unscaled: bool = false, reciprocal: bool = false",
             {.infer = infer_all_finite, .stage = Stage::lowered}),
      define("SquaredNorms",
             "values: Tin -> norms: Tout",
             "Tin: list(type), Tout: list(type), unscaled: bool = false",
             {.infer = infer_squared_norms, .stage = Stage::lowered}),
      define("UpdateLossScale",
             "scale: resource, good_steps: resource, hysteresis_left: resource, ok: bool, "
             "counter?: resource",
             "growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_steps: int = 2000, "
             "min_scale: float = 1.0, max_scale: float = 0.0, hysteresis: int = 1, grow_on_equal: "
             "bool = false, guard: bool = true, counts_all: bool = false",
             {.infer = infer_update_loss_scale, .stateful = true}),
      define(
          "LearningRate",
          "step: int64 -> lr: float",
          "kind: string = 'constant', base: float = 0.0, boundaries: list(int) = [], values: "
          "list(float) = [], decay_steps: int = 0, decay_rate: float = 0.0, staircase: bool = "
          "false, alpha: float = 0.0, t_mul: float = 1.0, m_mul: float = 1.0, end: float = "
          "0.0001, power: float = 1.0, cycle: bool = false, warmup_steps: int = 0, warmup_start: "
          "float = 0.0, warmup_target: float = 0.0",
          {.infer = infer_learning_rate}),
  };
}

}  // namespace halfstep::graph::ops

#pragma once
// The formulas of UpdateLossScale and LearningRate (scaling.cc), shared by the kernels of all
// devices. The functions are constexpr because nvcc lets device code call such functions.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>
#include <string_view>

namespace halfstep::graph {
class Attrs;
}

namespace halfstep::graph::ops {

/// The attributes of an UpdateLossScale, and the update of its variables.
struct LossScaleRule {
  float growth_factor, backoff_factor, min_scale, max_scale;
  std::int64_t growth_steps;
  std::int32_t hysteresis;
  bool grow_on_equal, guard;
  bool counts_all;  ///< the counter of steps counts those that are not `ok` too

  explicit LossScaleRule(const Attrs& attrs);

  constexpr void update(bool ok,
                        float& scale,
                        std::int32_t& good_steps,
                        std::int32_t& hysteresis_left) const {
    if (!ok) {
      good_steps = 0;
      if (--hysteresis_left > 0) return;
      hysteresis_left = hysteresis;
      scale = std::max(scale * backoff_factor, min_scale);
      return;
    }
    const std::int64_t good = std::int64_t{good_steps} + 1;
    if (grow_on_equal ? good != growth_steps : good < growth_steps) {
      constexpr std::int64_t k_int32_max = std::numeric_limits<std::int32_t>::max();
      good_steps = static_cast<std::int32_t>(std::min(good, k_int32_max));
      return;
    }
    good_steps = 0;
    hysteresis_left = hysteresis;
    const float grown = scale * growth_factor;
    const bool too_large = !std::isfinite(grown) || (max_scale > 0 && grown > max_scale);
    if (!guard || !too_large) scale = grown;
  }
};

enum class ScheduleKind : std::uint8_t {
  constant,
  piecewise_constant,
  exponential_decay,
  cosine_decay,
  cosine_decay_restarts,
  inverse_time_decay,
  polynomial_decay,
};
/// The kind of the attribute `kind`; nothing for another name.
std::optional<ScheduleKind> schedule_named(std::string_view name);

/// The attributes of a LearningRate except `boundaries` and `values`, and the rate, which is
/// computed in double, where Keras computes in float32.
struct Schedule {
  ScheduleKind kind;
  double base, decay_rate, alpha, t_mul, m_mul, end, power, warmup_start, warmup_target;
  std::int64_t decay_steps, warmup_steps;
  bool staircase, cycle;

  /// Of a node whose kind the shape rule has checked.
  explicit Schedule(const Attrs& attrs);

  /// The rate after `step` updates. A piecewise_constant has `pieces` values, and one boundary
  /// fewer; other kinds read neither.
  template <class Boundaries, class Values>
  constexpr double rate(std::int64_t step,
                        const Boundaries& boundaries,
                        const Values& values,
                        std::size_t pieces) const {
    if (step < warmup_steps) {
      const double done = static_cast<double>(step) / static_cast<double>(warmup_steps);
      return warmup_start + (warmup_target - warmup_start) * done;
    }
    const std::int64_t t = step - warmup_steps;
    if (kind == ScheduleKind::constant) return base;
    if (kind == ScheduleKind::piecewise_constant) {
      std::size_t piece = 0;
      while (piece + 1 < pieces && boundaries[piece] < t) ++piece;
      return values[piece];
    }
    double p = static_cast<double>(t) / static_cast<double>(decay_steps);
    if (kind == ScheduleKind::cosine_decay) {
      const double cosine = (1 + std::cos(std::numbers::pi * std::min(p, 1.0))) / 2;
      return base * ((1 - alpha) * cosine + alpha);
    }
    if (kind == ScheduleKind::cosine_decay_restarts) {
      double period = 0, length = 1;  // in first periods, as p
      if (t_mul == 1) {
        period = std::floor(p);
        p -= period;
      }
      for (; p >= length; length *= t_mul, ++period) p -= length;
      const double cosine = (1 + std::cos(std::numbers::pi * p / length)) / 2;
      return base * ((1 - alpha) * std::pow(m_mul, period) * cosine + alpha);
    }
    if (kind == ScheduleKind::polynomial_decay) {
      p = cycle ? p / std::max(1.0, std::ceil(p)) : std::min(p, 1.0);
      return (base - end) * std::pow(1 - p, power) + end;
    }
    if (staircase) p = std::floor(p);
    return kind == ScheduleKind::exponential_decay ? base * std::pow(decay_rate, p)
                                                   : base / (1 + decay_rate * p);
  }
};

}  // namespace halfstep::graph::ops

// The finite check, the loss-scale update and the learning rate. Formulas at the ops' definitions.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "backend/cpu/reference/reference.h"
#include "core/dispatch.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu {
namespace {

using graph::Attrs;

// A number is finite unless all exponent bits are set.
bool not_finite(float x) { return (std::bit_cast<std::uint32_t>(x) & 0x7f800000U) == 0x7f800000U; }
bool not_finite(float16 x) { return (x.bits & 0x7c00U) == 0x7c00U; }
bool not_finite(bfloat16 x) { return (x.bits & 0x7f80U) == 0x7f80U; }
bool not_finite(double x) {
  constexpr std::uint64_t k_exponent = 0x7ff0000000000000U;
  return (std::bit_cast<std::uint64_t>(x) & k_exponent) == k_exponent;
}

/// Reads blocks until one holds a non-finite element.
template <class T>
bool all_finite(const T* x, std::int64_t n) {
  constexpr std::int64_t k_chunk = 4096;
  std::atomic<bool> bad{false};
  parallel_for(n, 16 * k_chunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; at += k_chunk) {
      if (bad.load(std::memory_order_relaxed)) return;
      const std::int64_t stop = std::min(at + k_chunk, end);
      int found = 0;
      for (std::int64_t i = at; i < stop; ++i) found |= not_finite(x[i]) ? 1 : 0;
      if (found != 0) bad.store(true, std::memory_order_relaxed);
    }
  });
  return !bad;
}

/// Whether each element is finite after conversion to float32 and multiplication by `factor`.
bool all_finite_unscaled(const TensorView& x, float factor) {
  return dispatch_floating(x.dtype, [&]<class T>(Type<T>) {
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      if (not_finite(static_cast<float>(x.as<T>()[i]) * factor)) return false;
    }
    return true;
  });
}

Prepared prepare_all_finite(const NodeView& node, const Capabilities&) {
  const bool unscaled = node.attrs().get<bool>("unscaled");
  const bool reciprocal = node.attrs().get<bool>("reciprocal");
  return launch([unscaled, reciprocal](const Args& a) {
    float factor = unscaled ? *a.in.back().as<float>() : 1.0F;
    if (reciprocal) factor = 1 / factor;
    const auto values = a.in.first(a.in.size() - (unscaled ? 1 : 0));
    *a.out[0].as<bool>() = std::all_of(values.begin(), values.end(), [&](const TensorView& x) {
      if (!is_floating(x.dtype)) return true;
      if (unscaled) return all_finite_unscaled(x, factor);
      return dispatch_floating(
          x.dtype, [&]<class T>(Type<T>) { return all_finite(x.as<T>(), x.elements()); });
    });
  });
}

Prepared prepare_squared_norms(const NodeView& node, const Capabilities&) {
  return launch([unscaled = node.attrs().get<bool>("unscaled")](const Args& a) {
    const float factor = unscaled ? *a.in.back().as<float>() : 1.0F;
    for (std::size_t n = 0; n < a.out.size(); ++n) {
      double sum = 0;
      dispatch_floating(a.in[n].dtype, [&]<class T>(Type<T>) {
        for (std::int64_t i = 0; i < a.in[n].elements(); ++i) {
          const double x = static_cast<float>(a.in[n].as<T>()[i]) * factor;
          sum += x * x;
        }
      });
      *a.out[n].as<float>() = static_cast<float>(sum);
    }
  });
}

struct LossScaleRule {
  float growth_factor, backoff_factor, min_scale, max_scale;
  std::int64_t growth_steps;
  std::int32_t hysteresis;
  bool grow_on_equal, guard;

  void run(float& scale, std::int32_t& good_steps, std::int32_t& hysteresis_left, bool ok) const {
    if (!ok) {
      good_steps = 0;
      if (--hysteresis_left > 0) return;
      hysteresis_left = hysteresis;
      scale = std::max(scale * backoff_factor, min_scale);
      return;
    }
    const std::int64_t good = std::int64_t{good_steps} + 1;
    if (grow_on_equal ? good != growth_steps : good < growth_steps) {
      good_steps = static_cast<std::int32_t>(std::min<std::int64_t>(good, INT32_MAX));
      return;
    }
    good_steps = 0;
    hysteresis_left = hysteresis;
    const float grown = scale * growth_factor;
    const bool too_large = !std::isfinite(grown) || (max_scale > 0 && grown > max_scale);
    if (!guard || !too_large) scale = grown;
  }
};

Prepared prepare_update_loss_scale(const NodeView& node, const Capabilities&) {
  const Attrs& attrs = node.attrs();
  const auto real = [&](std::string_view name) {
    return static_cast<float>(attrs.get<double>(name));
  };
  const LossScaleRule rule{
      .growth_factor = real("growth_factor"),
      .backoff_factor = real("backoff_factor"),
      .min_scale = real("min_scale"),
      .max_scale = real("max_scale"),
      .growth_steps = attrs.get<std::int64_t>("growth_steps"),
      .hysteresis = static_cast<std::int32_t>(attrs.get<std::int64_t>("hysteresis")),
      .grow_on_equal = attrs.get<bool>("grow_on_equal"),
      .guard = attrs.get<bool>("guard")};
  return launch([rule, counts_all = attrs.get<bool>("counts_all")](const Args& a) {
    const bool ok = *a.in[3].as<bool>();
    rule.run(*a.in[0].as<float>(), *a.in[1].as<std::int32_t>(), *a.in[2].as<std::int32_t>(), ok);
    if (a.in.size() > 4 && (ok || counts_all)) ++*a.in[4].as<std::int64_t>();
  });
}

/// Evaluated in double and rounded once, where Keras computes in float32.
struct Schedule {
  std::string kind;
  double base, decay_rate, alpha, t_mul, m_mul, end, power, warmup_start, warmup_target;
  std::vector<std::int64_t> boundaries;
  std::vector<double> values;
  std::int64_t decay_steps, warmup_steps;
  bool staircase, cycle;

  explicit Schedule(const Attrs& attrs)
      : kind(attrs.get<std::string>("kind")),
        base(attrs.get<double>("base")),
        decay_rate(attrs.get<double>("decay_rate")),
        alpha(attrs.get<double>("alpha")),
        t_mul(attrs.get<double>("t_mul")),
        m_mul(attrs.get<double>("m_mul")),
        end(attrs.get<double>("end")),
        power(attrs.get<double>("power")),
        warmup_start(attrs.get<double>("warmup_start")),
        warmup_target(attrs.get<double>("warmup_target")),
        boundaries(attrs.get<std::vector<std::int64_t>>("boundaries")),
        values(attrs.get<std::vector<double>>("values")),
        decay_steps(attrs.get<std::int64_t>("decay_steps")),
        warmup_steps(attrs.get<std::int64_t>("warmup_steps")),
        staircase(attrs.get<bool>("staircase")),
        cycle(attrs.get<bool>("cycle")) {}

  double at(std::int64_t step) const {
    if (step < warmup_steps) {
      const double done = static_cast<double>(step) / static_cast<double>(warmup_steps);
      return warmup_start + (warmup_target - warmup_start) * done;
    }
    return after_warmup(step - warmup_steps);
  }

  double after_warmup(std::int64_t t) const {
    if (kind == "constant") return base;
    if (kind == "piecewise_constant") {
      const auto it = std::lower_bound(boundaries.begin(), boundaries.end(), t);
      return values[static_cast<std::size_t>(it - boundaries.begin())];
    }
    double p = static_cast<double>(t) / static_cast<double>(decay_steps);
    if (kind == "cosine_decay") {
      const double cosine = (1 + std::cos(std::numbers::pi * std::min(p, 1.0))) / 2;
      return base * ((1 - alpha) * cosine + alpha);
    }
    if (kind == "cosine_decay_restarts") {
      double period = 0, length = 1;  // in first periods, as p
      if (t_mul == 1) {
        period = std::floor(p);
        p -= period;
      }
      for (; p >= length; length *= t_mul, ++period) p -= length;
      const double cosine = (1 + std::cos(std::numbers::pi * p / length)) / 2;
      return base * ((1 - alpha) * std::pow(m_mul, period) * cosine + alpha);
    }
    if (kind == "polynomial_decay") {
      p = cycle ? p / std::max(1.0, std::ceil(p)) : std::min(p, 1.0);
      return (base - end) * std::pow(1 - p, power) + end;
    }
    if (staircase) p = std::floor(p);
    return kind == "exponential_decay" ? base * std::pow(decay_rate, p)
                                       : base / (1 + decay_rate * p);
  }
};

Prepared prepare_learning_rate(const NodeView& node, const Capabilities&) {
  return launch([schedule = Schedule(node.attrs())](const Args& a) {
    *a.out[0].as<float>() = static_cast<float>(schedule.at(*a.in[0].as<std::int64_t>()));
  });
}

}  // namespace

std::vector<Kernel> scaling_kernels() {
  return {
      {.op = "AllFinite", .name = "reference/all_finite", .prepare = prepare_all_finite},
      {.op = "SquaredNorms", .name = "reference/squared_norms", .prepare = prepare_squared_norms},
      {.op = "UpdateLossScale",
       .name = "reference/update_loss_scale",
       .prepare = prepare_update_loss_scale},
      {.op = "LearningRate", .name = "reference/learning_rate", .prepare = prepare_learning_rate},
  };
}

}  // namespace halfstep::backend::cpu

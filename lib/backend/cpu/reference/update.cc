// Optimizer updates, one pass over memory: every element of the variable, its slots and its
// gradient is read once and written once. Formulas at the ops' definitions. Arithmetic in float
// (double for float64), one rounding per stored tensor; the new weight uses the unrounded slot.
// When the last input `ok` is false nothing is written.

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstring>
#include <string_view>

#include "backend/cpu/packed/packing.h"
#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "core/subnormals.h"
#include "graph/ops/fused_update.h"

namespace halfstep::backend::cpu {
namespace {

using graph::Attrs;

/// Input `i`, a scalar.
template <class T>
Compute<T> scalar(const Args& a, std::size_t i) {
  return static_cast<Compute<T>>(*a.in[i].as<T>());
}

/// The attributes that all rules share.
struct Options {
  double weight_decay;
  explicit Options(const Attrs& attrs) : weight_decay(attrs.get_or<double>("weight_decay", 0)) {}

  /// The part that each element of the variable loses first.
  template <class C>
  C decay(C lr) const {
    return static_cast<C>(weight_decay) * lr;
  }
};

/// w and slots := rule(g, w - decay w, slots...) for elements [begin, end).
template <class T, class Rule, std::same_as<T>... Slots>
void sweep(std::int64_t begin,
           std::int64_t end,
           Compute<T> decay,
           const Rule& rule,
           const T* __restrict g,
           T* __restrict w,
           Slots* __restrict... slots) {
  using C = Compute<T>;
  for (std::int64_t i = begin; i < end; ++i) {
    [&](C weight, auto... slot) {
      if (decay != 0) weight -= weight * decay;
      rule(static_cast<C>(g[i]), weight, slot...);
      w[i] = static_cast<T>(weight);
      ((slots[i] = static_cast<T>(slot)), ...);
    }(static_cast<C>(w[i]), static_cast<C>(slots[i])...);
  }
}

/// Runs rule(g, w, slots...) over the variable at input 0, less its decay, and its slots at inputs
/// 1, 2, ...
template <class T, std::size_t... slot, class Rule>
void apply(const Args& a,
           std::size_t gradient,
           std::index_sequence<slot...>,
           Compute<T> decay,
           const Rule& rule) {
  const T* g = a.in[gradient].as<T>();
  parallel_for(a.in[gradient].elements(), k_grain, [&](std::int64_t begin, std::int64_t end) {
    const FlushSubnormals flush;  // as the vector kernels do
    sweep<T>(begin, end, decay, rule, g, a.in[0].as<T>(), a.in[slot + 1].as<T>()...);
  });
}

constexpr std::make_index_sequence<0> k_no_slots;
constexpr std::make_index_sequence<1> k_one_slot;
constexpr std::make_index_sequence<2> k_two_slots;
constexpr std::make_index_sequence<3> k_three_slots;

struct GradientDescent : Options {
  using Options::Options;

  template <class T>
  void run(const Args& a) const {
    using C = Compute<T>;
    const C alpha = scalar<T>(a, 1);
    apply<T>(a, 2, k_no_slots, decay(alpha), [=](C g, C& w) { w -= alpha * g; });
  }
};

struct Momentum : Options {
  bool nesterov;
  explicit Momentum(const Attrs& attrs)
      : Options(attrs), nesterov(attrs.get<bool>("use_nesterov")) {}

  template <class T>
  void run(const Args& a) const {
    using C = Compute<T>;
    const C lr = scalar<T>(a, 2), momentum = scalar<T>(a, 4);
    if (nesterov) {
      apply<T>(a, 3, k_one_slot, decay(lr), [=](C g, C& w, C& accum) {
        accum = momentum * accum - lr * g;
        w += momentum * accum - lr * g;
      });
    } else {
      apply<T>(a, 3, k_one_slot, decay(lr), [=](C g, C& w, C& accum) {
        accum = momentum * accum - lr * g;
        w += accum;
      });
    }
  }
};

struct KerasRmsProp : Options {
  using Options::Options;

  template <class T>
  void run(const Args& a) const {
    using C = Compute<T>;
    const C lr = scalar<T>(a, 2), rho = scalar<T>(a, 3), epsilon = scalar<T>(a, 4);
    apply<T>(a, 5, k_one_slot, decay(lr), [=](C g, C& w, C& ms) {
      ms = rho * ms + (1 - rho) * (g * g);
      w -= lr * g / std::sqrt(ms + epsilon);
    });
  }
};

struct RmsProp : Options {
  using Options::Options;

  template <class T>
  void run(const Args& a) const {
    using C = Compute<T>;
    const C lr = scalar<T>(a, 3), rho = scalar<T>(a, 4), momentum = scalar<T>(a, 5);
    const C epsilon = scalar<T>(a, 6);
    apply<T>(a, 7, k_two_slots, decay(lr), [=](C g, C& w, C& ms, C& mom) {
      ms = rho * ms + (1 - rho) * (g * g);
      mom = momentum * mom + lr * g / std::sqrt(ms + epsilon);
      w -= mom;
    });
  }
};

struct CenteredRmsProp : Options {
  using Options::Options;

  template <class T>
  void run(const Args& a) const {
    using C = Compute<T>;
    const C lr = scalar<T>(a, 4), rho = scalar<T>(a, 5), momentum = scalar<T>(a, 6);
    const C epsilon = scalar<T>(a, 7);
    apply<T>(a, 8, k_three_slots, decay(lr), [=](C g, C& w, C& mg, C& ms, C& mom) {
      mg = rho * mg + (1 - rho) * g;
      ms = rho * ms + (1 - rho) * (g * g);
      // Rounding can make the variance negative, where the plain formula would give NaN: clamped to
      // 0.
      const C variance = ms - mg * mg;
      mom = momentum * mom + lr * g / std::sqrt((variance < 0 ? C{0} : variance) + epsilon);
      w -= mom;
    });
  }
};

/// Adam and AdamW; `shift` is 1 where weight_decay precedes beta1 in the inputs.
template <bool decays>
struct AdamRule : Options {
  bool nesterov;
  explicit AdamRule(const Attrs& attrs)
      : Options(attrs), nesterov(attrs.get_or<bool>("use_nesterov", false)) {}

  template <class T>
  void run(const Args& a) const {
    using C = Compute<T>;
    constexpr std::size_t k_shift = decays ? 1 : 0;
    const C beta1_power = scalar<T>(a, 3), beta2_power = scalar<T>(a, 4), lr = scalar<T>(a, 5);
    const C beta1 = scalar<T>(a, 6 + k_shift), beta2 = scalar<T>(a, 7 + k_shift);
    const C epsilon = scalar<T>(a, 8 + k_shift);
    const C rate = lr * std::sqrt(1 - beta2_power) / (1 - beta1_power);
    const C own_decay = decays ? scalar<T>(a, 6) : C{0};
    const auto moments = [=](C g, C& m, C& v) {
      m += (g - m) * (1 - beta1);
      v += (g * g - v) * (1 - beta2);
    };
    if (nesterov) {
      apply<T>(a, 9 + k_shift, k_two_slots, decay(lr), [=](C g, C& w, C& m, C& v) {
        moments(g, m, v);
        w -= rate * (m * beta1 + (1 - beta1) * g) / (std::sqrt(v) + epsilon);
      });
    } else {
      apply<T>(a, 9 + k_shift, k_two_slots, decay(lr), [=](C g, C& w, C& m, C& v) {
        if constexpr (decays) w -= w * own_decay * lr;
        moments(g, m, v);
        w -= rate * m / (std::sqrt(v) + epsilon);
      });
    }
  }
};

struct Adagrad : Options {
  bool update_slots;
  explicit Adagrad(const Attrs& attrs)
      : Options(attrs), update_slots(attrs.get<bool>("update_slots")) {}

  template <class T>
  void run(const Args& a) const {
    using C = Compute<T>;
    const C lr = scalar<T>(a, 2), epsilon = scalar<T>(a, 3);
    apply<T>(a, 4, k_one_slot, decay(lr), [=, update = update_slots](C g, C& w, C& accum) {
      if (update) accum += g * g;
      w -= lr * g / std::sqrt(accum + epsilon);
    });
  }
};

bool skipped(const Args& a) {
  return a.in.back().dtype == DType::boolean && !*a.in.back().as<bool>();
}

template <class Rule>
Prepared prepare(const NodeView& node, const Capabilities&) {
  const Rule rule(node.attrs());
  return dispatch_floating(node.attrs().get<DType>("T"), [&]<class T>(Type<T>) {
    return launch([rule](const Args& a) {
      if (!skipped(a)) rule.template run<T>(a);
    });
  });
}

using Run = void (*)(const Attrs& attrs, const Args& args);

template <class Rule>
void run(const Attrs& attrs, const Args& args) {
  Rule(attrs).template run<float>(args);
}

struct Row {
  std::string_view op;
  std::string_view name;
  Prepared (*prepare)(const NodeView&, const Capabilities&);
  Run run;  ///< on float32, for FusedUpdate
};

template <class Rule>
constexpr Row row(std::string_view op, std::string_view name) {
  return {op, name, prepare<Rule>, run<Rule>};
}

constexpr std::array k_rows{
    row<GradientDescent>("ResourceApplyGradientDescent",
                         "reference/resource_apply_gradient_descent"),
    row<Momentum>("ResourceApplyKerasMomentum", "reference/resource_apply_keras_momentum"),
    row<KerasRmsProp>("ResourceApplyKerasRMSProp", "reference/resource_apply_keras_rms_prop"),
    row<RmsProp>("ResourceApplyRMSProp", "reference/resource_apply_rms_prop"),
    row<CenteredRmsProp>("ResourceApplyCenteredRMSProp",
                         "reference/resource_apply_centered_rms_prop"),
    row<AdamRule<false>>("ResourceApplyAdam", "reference/resource_apply_adam"),
    row<AdamRule<true>>("ResourceApplyAdamW", "reference/resource_apply_adam_w"),
    row<Adagrad>("ResourceApplyAdagradV2", "reference/resource_apply_adagrad_v2"),
};

Prepared prepare_fused(const NodeView& node, const Capabilities&) {
  const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node.node);
  return prepare_fused_update(node, node.input(ports.rule.gradient));
}

const Row& row_of(const std::string& rule) {
  return *std::find_if(
      k_rows.begin(), k_rows.end(), [&](const Row& candidate) { return candidate.op == rule; });
}

/// Converts the elements that the rows of two tensors share, and sets further ones of `to` to 0.
void convert_rows(const TensorView& from, const TensorView& to) {
  if (from.shape == to.shape) return convert(from, to);
  const std::int64_t columns = std::min(from.shape.back(), to.shape.back());
  std::memset(to.data, 0, to.bytes());
  for (std::int64_t row = 0; row < to.elements() / to.shape.back(); ++row) {
    const auto at = [&](const TensorView& view) {
      const auto skipped = static_cast<std::size_t>(row * view.shape.back());
      return TensorView{view.dtype,
                        Shape{columns},
                        static_cast<std::byte*>(view.data) + skipped * size_bytes(view.dtype)};
    };
    convert(at(from), at(to));
  }
}

/// A gradient in float32, times `factor`.
void unscale(const TensorView& given, float factor, const TensorView& to) {
  convert_rows(given, to);
  for (std::int64_t i = 0; i < to.elements(); ++i) to.as<float>()[i] *= factor;
}

/// Calls the rule for each tensor, with its handles, its gradient and the scalars in their order.
Prepared prepare_grouped(const NodeView& node, const Capabilities&) {
  const graph::ops::GroupedUpdatePorts ports = graph::ops::grouped_update_ports(node.attrs());
  std::int64_t largest = 0;
  std::vector<Shape> shapes;
  for (std::size_t t = 0; t < ports.tensors; ++t) {
    shapes.push_back(graph::ops::variable_type(node.producer(ports.handle(t, 0))).shape);
    largest = std::max(largest, shapes.back().elements());
  }
  const Row& row = row_of(node.attrs().get<std::string>("rule"));
  const bool reciprocal = node.attrs().get<bool>("reciprocal");
  const bool counted = node.attrs().get<bool>("counted");
  return launch(
      [=, attrs = node.attrs(), run = row.run](const Args& a) {
        if (ports.guarded && !*a.in.back().as<bool>()) return;
        float factor = ports.unscaled ? *a.in[ports.unscale()].as<float>() : 1.0F;
        if (reciprocal) factor = 1 / factor;
        std::vector<TensorView> scalars(a.in.begin() + static_cast<std::ptrdiff_t>(ports.scalars),
                                        a.in.end());
        std::array<float, 2> powers{};
        for (std::size_t i = 0; counted && i < powers.size(); ++i) {
          // The betas follow in the same order, before epsilon.
          const std::size_t beta = ports.rule.inputs - ports.rule.resources - 4 + i;
          const auto number = static_cast<float>(*scalars[i].as<std::int64_t>()) + 1;
          powers[i] = std::pow(*scalars[beta].as<float>(), number);
          scalars[i] = {DType::float32, {}, &powers[i]};
        }
        for (std::size_t t = 0; t < ports.tensors; ++t) {
          const TensorView gradient{DType::float32, shapes[t], a.workspace};
          const bool decayed = !ports.decayed.empty() && ports.decayed[t] != 0;
          unscale(a.in[ports.gradients + t], decayed ? 1.0F : factor, gradient);
          for (std::int64_t i = 0; decayed && i < gradient.elements(); ++i) {
            const float w = a.in[ports.handle(t, 0)].as<float>()[i];
            float& g = gradient.as<float>()[i];
            g = (g + *a.in[ports.decay()].as<float>() * (w * 2)) * factor;
          }
          std::vector<TensorView> in;
          for (std::size_t i = 0; i < ports.rule.resources; ++i) {
            in.push_back(a.in[ports.handle(t, i)]);
          }
          std::size_t scalar = 0;
          for (std::size_t i = ports.rule.resources; i < ports.rule.inputs; ++i) {
            in.push_back(i == ports.rule.gradient ? gradient : scalars[scalar++]);
          }
          run(attrs, {in, {}, nullptr});
          if (ports.copies[t] < 0) continue;
          convert_rows(in[0], a.in[static_cast<std::size_t>(ports.copies[t])]);
        }
      },
      static_cast<std::size_t>(largest) * sizeof(float));
}

Prepared prepare_cast_variable(const NodeView&, const Capabilities&) {
  return launch([](const Args& a) { convert_rows(a.in[0], a.out[0]); });
}

}  // namespace

/// The rule on a gradient that is widened and unscaled first; then the variable is packed.
Prepared prepare_fused_update(const NodeView& node, const graph::TensorType& given) {
  const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node.node);
  const Row& row = row_of(node.attrs().get<std::string>("rule"));
  const Shape shape = given.shape;
  std::vector<packed::Packing> packings;
  for (std::size_t i = ports.packed_begin; i < ports.packed_end; ++i) {
    packings.emplace_back(graph::TensorType{DType::float32, shape},
                          node.producer(i).attrs,
                          packed::portable_block_kernels());
  }
  return launch(
      [=, attrs = node.attrs(), run = row.run](const Args& a) {
        if (ports.guarded && !*a.in.back().as<bool>()) return;
        std::array<TensorView, 16> in;
        std::copy_n(a.in.begin(), ports.rule.inputs, in.begin());
        TensorView& gradient = in[ports.rule.gradient];
        gradient = {DType::float32, shape, a.workspace};
        unscale(a.in[ports.rule.gradient], *a.in[ports.unscale].as<float>(), gradient);
        run(attrs, {std::span(in).first(ports.rule.inputs), {}, nullptr});
        for (std::size_t p = 0; p < packings.size(); ++p) {
          packings[p].pack_all(a.in[0].as<const std::byte>(),
                               a.in[ports.packed_begin + p].as<std::byte>());
        }
      },
      static_cast<std::size_t>(shape.elements()) * sizeof(float));
}

std::vector<Kernel> update_kernels() {
  std::vector<Kernel> kernels;
  for (const Row& row : k_rows) {
    kernels.push_back({.op = row.op, .name = row.name, .prepare = row.prepare});
  }
  kernels.push_back(
      {.op = "FusedUpdate", .name = "reference/fused_update", .prepare = prepare_fused});
  kernels.push_back(
      {.op = "GroupedUpdate", .name = "reference/grouped_update", .prepare = prepare_grouped});
  kernels.push_back(
      {.op = "CastVariable", .name = "reference/cast_variable", .prepare = prepare_cast_variable});
  return kernels;
}

}  // namespace halfstep::backend::cpu

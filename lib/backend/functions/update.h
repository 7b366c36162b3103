#pragma once
// The update rules of the optimizer ops (graph/ops/update.cc): the formula of each is written here
// once, for the reference kernels, the vector kernels and CUDA.
//
// apply() changes an element w of the variable and its slots s by an element g of the gradient.
// prepare() first computes, once for all elements, the scalars that apply() reads from those of the
// op. C is the compute type; both are templates over Math for the reasons given in function.h. The
// order of the operations is part of each rule: without fused multiply-add all kernels give the
// same bits.

#include "backend/functions/function.h"

namespace halfstep::backend::functions {

/// The scalar inputs of an update: values, or the addresses of values. An op has some of them.
template <class Number>
struct UpdateScalars {
  Number rate = {}, momentum = {}, rho = {};
  Number beta1_power = {}, beta2_power = {}, beta1 = {}, beta2 = {}, epsilon = {};
  Number weight_decay = {};
};

/// Sets the powers of the betas for the update after `updates` others.
template <class Math, class C>
constexpr void set_powers(UpdateScalars<C>& n, C updates) {
  n.beta1_power = Math::pow(n.beta1, updates + C(1));
  n.beta2_power = Math::pow(n.beta2, updates + C(1));
}

/// The properties of a rule with `count` slots, with the defaults of most rules.
template <int count>
struct Rule {
  static constexpr int slots = count;
  /// The op's bool attribute that apply() takes; nullptr: none, and apply() takes false.
  static constexpr const char* flag = nullptr;

  template <class Math, class C>
  static constexpr void prepare(UpdateScalars<C>&) {}
};

struct GradientDescent : Rule<0> {
  static constexpr const char* op = "ResourceApplyGradientDescent";
  template <class Math, class C>
  static constexpr void apply(const UpdateScalars<C>& n, bool, C g, C& w, C*) {
    w -= n.rate * g;
  }
};

struct Momentum : Rule<1> {
  static constexpr const char* op = "ResourceApplyKerasMomentum";
  static constexpr const char* flag = "use_nesterov";
  template <class Math, class C>
  static constexpr void apply(const UpdateScalars<C>& n, bool nesterov, C g, C& w, C* s) {
    s[0] = n.momentum * s[0] - n.rate * g;
    w += nesterov ? n.momentum * s[0] - n.rate * g : s[0];
  }
};

struct KerasRmsProp : Rule<1> {
  static constexpr const char* op = "ResourceApplyKerasRMSProp";
  template <class Math, class C>
  static constexpr void apply(const UpdateScalars<C>& n, bool, C g, C& w, C* s) {
    s[0] = n.rho * s[0] + (C(1) - n.rho) * (g * g);
    w -= n.rate * g / Math::sqrt(s[0] + n.epsilon);
  }
};

struct RmsProp : Rule<2> {
  static constexpr const char* op = "ResourceApplyRMSProp";
  template <class Math, class C>
  static constexpr void apply(const UpdateScalars<C>& n, bool, C g, C& w, C* s) {
    s[0] = n.rho * s[0] + (C(1) - n.rho) * (g * g);
    s[1] = n.momentum * s[1] + n.rate * g / Math::sqrt(s[0] + n.epsilon);
    w -= s[1];
  }
};

struct CenteredRmsProp : Rule<3> {
  static constexpr const char* op = "ResourceApplyCenteredRMSProp";
  template <class Math, class C>
  static constexpr void apply(const UpdateScalars<C>& n, bool, C g, C& w, C* s) {
    s[0] = n.rho * s[0] + (C(1) - n.rho) * g;
    s[1] = n.rho * s[1] + (C(1) - n.rho) * (g * g);
    // Rounding can make the variance negative, where the plain formula would give NaN: clamped to
    // 0.
    const C difference = s[1] - s[0] * s[0];
    const C variance = difference < C(0) ? C(0) : difference;
    s[2] = n.momentum * s[2] + n.rate * g / Math::sqrt(variance + n.epsilon);
    w -= s[2];
  }
};

struct Adam : Rule<2> {
  static constexpr const char* op = "ResourceApplyAdam";
  static constexpr const char* flag = "use_nesterov";
  /// The rate becomes that with the bias correction of both moments.
  template <class Math, class C>
  static constexpr void prepare(UpdateScalars<C>& n) {
    n.rate = n.rate * Math::sqrt(C(1) - n.beta2_power) / (C(1) - n.beta1_power);
  }
  template <class Math, class C>
  static constexpr void apply(const UpdateScalars<C>& n, bool nesterov, C g, C& w, C* s) {
    s[0] += (g - s[0]) * (C(1) - n.beta1);
    s[1] += (g * g - s[1]) * (C(1) - n.beta2);
    const C m = nesterov ? s[0] * n.beta1 + (C(1) - n.beta1) * g : s[0];
    w -= n.rate * m / (Math::sqrt(s[1]) + n.epsilon);
  }
};

struct AdamW : Rule<2> {
  static constexpr const char* op = "ResourceApplyAdamW";
  /// The weight decay becomes the share of the variable that an update takes off.
  template <class Math, class C>
  static constexpr void prepare(UpdateScalars<C>& n) {
    n.weight_decay *= n.rate;
    Adam::prepare<Math>(n);
  }
  template <class Math, class C>
  static constexpr void apply(const UpdateScalars<C>& n, bool, C g, C& w, C* s) {
    w -= w * n.weight_decay;
    Adam::apply<Math>(n, false, g, w, s);
  }
};

struct Adagrad : Rule<1> {
  static constexpr const char* op = "ResourceApplyAdagradV2";
  static constexpr const char* flag = "update_slots";
  template <class Math, class C>
  static constexpr void apply(const UpdateScalars<C>& n, bool update_slots, C g, C& w, C* s) {
    if (update_slots) s[0] += g * g;
    w -= n.rate * g / Math::sqrt(s[0] + n.epsilon);
  }
};

using UpdateRules =
    List<Adagrad, Adam, AdamW, CenteredRmsProp, GradientDescent, KerasRmsProp, Momentum, RmsProp>;

}  // namespace halfstep::backend::functions

#pragma once
// Update formulas as expressions over whole tensors: `v + (g * g - v) * (1 - beta_2)` adds one node
// for each operator. For optimizers without an update op of their own; lowering fuses chains of
// elementwise ops.

#include <fmt/format.h>

#include "nn/optim/optimizer.h"

namespace halfstep::nn {

/// A value of the update's graph.
struct Term {
  graph::Builder& b;
  graph::Value value;

  Term apply(std::string_view op) const { return {b, b.add(op, {value})}; }
  Term apply(std::string_view op, const Term& y) const { return {b, b.add(op, {value, y.value})}; }
  /// A scalar of the same dtype.
  Term number(double x) const { return {b, b.scalar(b.dtype(value), x)}; }
};

inline Term operator+(const Term& x, const Term& y) { return x.apply("AddV2", y); }
inline Term operator-(const Term& x, const Term& y) { return x.apply("Sub", y); }
inline Term operator*(const Term& x, const Term& y) { return x.apply("Mul", y); }
inline Term operator/(const Term& x, const Term& y) { return x.apply("RealDiv", y); }
inline Term operator+(const Term& x, double y) { return x + x.number(y); }
inline Term operator*(const Term& x, double y) { return x * x.number(y); }
inline Term operator-(double x, const Term& y) { return y.number(x) - y; }
inline Term square(const Term& x) { return x * x; }
inline Term root(const Term& x) { return x.apply("Sqrt"); }
inline Term greater(const Term& x, const Term& y) { return x.apply("Maximum", y); }

/// The fields that Adam and its variants share.
struct AdamFields {
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-7;

  /// `of_beta_2`: the quantity that beta_2 keeps a part of.
  void fields(config::Fields& f, std::string_view of_beta_2 = "mean square") {
    f.field("beta_1",
            beta_1,
            {.doc = "Decay rate of the mean gradient. [fraction]", .min = 0, .below = 1});
    f.field(
        "beta_2",
        beta_2,
        {.doc = fmt::format("Decay rate of the {}. [fraction]", of_beta_2), .min = 0, .below = 1});
    f.field("epsilon", epsilon, {.doc = "Added to the divisor, in float32.", .above = 0});
  }
};

/// A variable: its value before the step, and the handle that assign() writes.
struct Slot {
  graph::Value handle;
  Term old;
};

/// The terms of an update; every assign() follows the last use of an old value.
class Terms {
 public:
  explicit Terms(OptimizerContext& c) : c_(c) {}

  /// The weight, less its decay.
  Term weight() const {
    const Term w{c_.b, c_.weight.read};
    return c_.weight_decay == 0 ? w : w - w * (learning_rate() * c_.weight_decay);
  }
  Term gradient() const { return {c_.b, c_.gradient}; }
  Term learning_rate() const { return {c_.b, c_.learning_rate}; }
  /// beta^t, t the number of the step from 1.
  Term power(double beta) const { return {c_.b, c_.power(beta)}; }
  Slot slot(std::string_view name, double initial = 0) const {
    const graph::Value handle = c_.slot(name, initial);
    return {handle, {c_.b, c_.b.read(handle)}};
  }
  /// One number beside each weight.
  Slot scalar_slot(std::string_view name, double initial) const {
    const graph::Value handle = c_.slot(name, initial, Shape{});
    return {handle, {c_.b, c_.b.read(handle)}};
  }
  void assign(const Slot& slot, const Term& value) const {
    c_.update("AssignVariableOp", {slot.handle, value.value});
  }
  void assign_weight(const Term& value) const {
    c_.update("AssignVariableOp", {c_.weight.handle, value.value});
  }

 private:
  OptimizerContext& c_;
};

}  // namespace halfstep::nn

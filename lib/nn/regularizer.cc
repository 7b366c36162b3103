#include "nn/regularizer.h"

#include "graph/ops/ops.h"

namespace halfstep::nn {
namespace {

using graph::Value;
using Type = RegularizerSpec::Type;

constexpr std::array k_types{
    config::Named{Type::l1, "l1"},
    config::Named{Type::l2, "l2"},
    config::Named{Type::l1_l2, "l1_l2"},
};

/// The factor of a penalty given by its name alone.
constexpr double k_default_factor = 0.01;

Value scaled_sum(graph::Builder& b, double factor, Value terms) {
  const Value sum = graph::ops::reduce(b, "Sum", terms);
  return b.add("Mul", {sum, b.scalar(b.dtype(sum), factor)});
}

}  // namespace

double RegularizerSpec::l1_factor() const {
  if (type == Type::l2) return 0;
  return l1.value_or(type.has_value() && !l2 ? k_default_factor : 0);
}

double RegularizerSpec::l2_factor() const {
  if (type == Type::l1) return 0;
  return l2.value_or(type.has_value() && !l1 ? k_default_factor : 0);
}

void RegularizerSpec::fields(config::Fields& f) {
  f.choice("type",
           type,
           k_types,
           {.doc = "Penalty: l1 times the sum of |w|, l2 times the sum of w^2, or both; null: "
                   "those whose factors are given."});
  if (type != Type::l2)
    f.field("l1",
            l1,
            {.doc = "Factor of the sum of |w|; null: 0.01 where no factor is given, else 0.",
             .min = 0});
  if (type != Type::l1)
    f.field("l2",
            l2,
            {.doc = "Factor of the sum of w^2; null: 0.01 where no factor is given, else 0.",
             .min = 0});
}

Value penalty(graph::Builder& b, const RegularizerSpec& spec, Value x) {
  if (is_half(b.dtype(x))) x = b.cast(x, DType::float32);
  Value total;
  if (spec.l1_factor() != 0) total = scaled_sum(b, spec.l1_factor(), b.add("Abs", {x}));
  if (spec.l2_factor() != 0) {
    const Value l2 = scaled_sum(b, spec.l2_factor(), b.add("Square", {x}));
    total = total.valid() ? b.add("AddV2", {total, l2}) : l2;
  }
  return total.valid() ? total : b.scalar(b.dtype(x), 0);
}

void regularizer_field(config::Fields& f,
                       std::string_view name,
                       std::optional<RegularizerSpec>& spec,
                       std::string_view doc) {
  f.section(name, spec, {.doc = doc, .shorthand_key = "type"});
}

}  // namespace halfstep::nn

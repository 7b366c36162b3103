#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> normalization_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](std::string_view op,
                       std::string_view what,
                       bool training,
                       std::vector<Operand> inputs,
                       double factor = 1) {
    graph::Attrs attrs{{"epsilon", 0x1p-10}, {"is_training", training}};
    if (factor != 1) attrs.set("exponential_avg_factor", factor);
    cases.push_back({.name = fmt::format("{}/{}", op, what),
                     .op = std::string(op),
                     .attrs = std::move(attrs),
                     .inputs = std::move(inputs),
                     .terms = 16,
                     .magnitude = 64,
                     // With statistics in float32 the rule is not exact in float64.
                     .check_gradient = false});
  };
  const auto vector = [](std::int64_t channels, double low, double high) {
    return typed(uniform({channels}, low, high), DType::float32);
  };
  struct Size {
    std::string_view name;
    Shape x;
  };
  for (const Size& s : {Size{"images", {3, 4, 5, 7}},
                        Size{"one row", {1, 1, 1, 5}},
                        Size{"many channels", {3, 2, 1, 37}}}) {
    const std::int64_t c = s.x.back();
    const auto named = [&](std::string_view what) { return fmt::format("{}, {}", s.name, what); };
    const Operand x = uniform(s.x), scale = vector(c, 0.5, 2), offset = vector(c, -2, 2);
    const Operand mean = vector(c, -1, 1), variance = vector(c, 0.5, 2), none = vector(0, 0, 0);
    add("FusedBatchNormV3", named("training"), true, {x, scale, offset, none, none});
    add("FusedBatchNormV3", named("averaging"), true, {x, scale, offset, mean, variance}, 0.25);
    add("FusedBatchNormV3", named("inference"), false, {x, scale, offset, mean, variance});
    cases.push_back({.name = fmt::format("BatchMoments/{}", s.name),
                     .op = "BatchMoments",
                     .inputs = {x},
                     .terms = 16,
                     .magnitude = 64,
                     .check_gradient = false});
    const auto add_part = [&](std::string_view op, std::vector<Operand> inputs) {
      cases.push_back({.name = fmt::format("{}/{}", op, s.name),
                       .op = std::string(op),
                       .attrs = {{"epsilon", 0x1p-10}},
                       .inputs = std::move(inputs),
                       .terms = 16,
                       .magnitude = 64,
                       // Moments that are not those of x.
                       .check_gradient = false});
    };
    add_part("BatchNormGradSums", {x, x, mean, variance});
    add_part("BatchNormGradSums", {x, x, mean, variance, scale, offset});
    cases.back().name += ", relu";
    cases.back().attrs.set("num_relu_inputs", std::int64_t{2});
    const std::int64_t rows = 3 * s.x.elements() / c;  // of three ranks
    add_part("NormalizeByMoments", {x, scale, offset, mean, variance});
    cases.back().attrs.set("rows", rows);
    for (const bool side : {false, true}) {
      std::vector<Operand> inputs{x, scale, offset, mean, variance};
      if (side) inputs.push_back(x);
      add_part("NormalizeByMoments", std::move(inputs));
      cases.back().name += side ? ", sum and relu" : ", relu";
      cases.back().attrs.set("rows", rows);
      cases.back().attrs.set("activation_mode", std::string("Relu"));
      cases.back().attrs.set("num_side_inputs", std::int64_t{side ? 1 : 0});
      // A sum is rounded twice: only a reference of the same dtype rounds the same.
      if (side) cases.back().dtypes = DTypeSet{DType::float32, DType::float16, DType::bfloat16};
    }
    add_part("NormalizeByMomentsGrad", {x, x, scale, mean, variance, offset, offset});
    cases.back().attrs.set("rows", rows);
    add_part("NormalizeByMomentsGrad", {x, x, scale, mean, variance, offset, offset, offset});
    cases.back().name += ", relu";
    cases.back().attrs.set("rows", rows);
    cases.back().attrs.set("num_relu_inputs", std::int64_t{1});
    const Operand reserve = typed(uniform({}), DType::float32);
    for (const bool training : {true, false}) {
      add("FusedBatchNormGradV3",
          named(training ? "training" : "inference"),
          training,
          {x, x, scale, mean, variance, reserve});
      add("BatchNormReluGrad",
          named(training ? "training" : "inference"),
          training,
          {x, x, scale, offset, mean, variance});
    }
    for (const bool side : {false, true}) {
      for (const bool training : {true, false}) {
        std::vector<Operand> inputs{x, scale, offset, mean, variance};
        if (side) inputs.push_back(x);
        add("_FusedBatchNormEx",
            named(fmt::format("{}{}", training ? "training" : "inference", side ? " and sum" : "")),
            training,
            std::move(inputs));
        cases.back().attrs.set("activation_mode", std::string("Relu"));
        cases.back().attrs.set("num_side_inputs", std::int64_t{side ? 1 : 0});
        // A sum is rounded twice: only a reference of the same dtype rounds the same.
        if (side) {
          cases.back().dtypes = DTypeSet{DType::float32, DType::float16, DType::bfloat16};
        }
      }
    }
  }
  // Moments in double, for the gradient rule.
  cases.push_back({.name = "LayerNorm/double",
                   .op = "LayerNorm",
                   .inputs = {uniform({3, 7}), uniform({7}, 0.5, 2), uniform({7})},
                   .dtypes = DTypeSet{DType::float64}});
  for (const Size& s : {Size{"rows", {3, 5, 37}},
                        Size{"one row", {7}},
                        Size{"long rows", {2, 2500}},
                        Size{"many rows", {300, 70}}}) {
    const Operand x = uniform(s.x), gamma = vector(s.x.back(), 0.5, 2);
    const Shape rows(std::span(s.x.begin(), s.x.rank() - 1));
    const auto per_row = [&](double low, double high) {
      return typed(uniform(rows, low, high), DType::float32);
    };
    // Sums are rounded before they are used: of 16 bits once more than a reference in double.
    const auto add_sums = [&](std::int64_t addends, std::int64_t of_x) {
      OpCase& c = cases.back();
      c.name +=
          fmt::format("/{} addends, {} of x, {}", addends, of_x, to_string(c.inputs.back().shape));
      c.attrs.set("num_addends", addends);
      if (of_x > 0) c.attrs.set("x_addends", of_x);
      c.dtypes = DTypeSet{DType::float32};
      OpCase half = c;
      half.name += ", 16 bits";
      half.dtypes = DTypeSet{DType::float16, DType::bfloat16};
      half.rounds_inside = true;
      half.terms = 4;
      half.magnitude = 8;
      cases.push_back(std::move(half));
    };
    const auto add_rows = [&](std::string_view op, std::vector<Operand> inputs) {
      cases.push_back({.name = fmt::format("{}/{}", op, s.name),
                       .op = std::string(op),
                       .inputs = std::move(inputs),
                       // Sums of up to 128 rows are float32.
                       .terms = 24 + std::min<std::int64_t>(128, rows.elements()),
                       .magnitude = 64,
                       .check_gradient = false});
    };
    const Operand beta = vector(s.x.back(), -2, 2);
    add_rows("LayerNorm", {x, gamma, beta});
    cases.back().attrs.set("epsilon", 0x1p-10);
    for (const Shape& addend : {s.x, Shape{s.x.back()}}) {
      add_rows("LayerNorm", {x, gamma, beta, uniform(addend)});
      cases.back().attrs.set("epsilon", 0x1p-10);
      add_sums(1, 0);
    }
    add_rows("LayerNormGrad", {x, x, gamma, per_row(-1, 1), per_row(0.5, 2)});
    for (const auto& [addends, of_x] : {std::pair{1, 0}, {1, 1}, {3, 1}}) {
      add_rows("LayerNormGrad", {x, x, gamma, per_row(-1, 1), per_row(0.5, 2)});
      cases.back().inputs.insert(cases.back().inputs.end(), addends, uniform(s.x));
      add_sums(addends, of_x);
    }
  }
  return cases;
}

}  // namespace halfstep::testing

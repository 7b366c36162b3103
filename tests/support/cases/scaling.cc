#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> scaling_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](std::string_view op,
                       std::string_view what,
                       std::vector<Operand> inputs,
                       graph::Attrs attrs = {}) {
    cases.push_back({.name = fmt::format("{}/{}", op, what),
                     .op = std::string(op),
                     .attrs = std::move(attrs),
                     .inputs = std::move(inputs)});
  };
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16, DType::float64}) {
    add("AllFinite", name(dtype), {typed(uniform({70'001}), dtype)});
    add("AllFinite", fmt::format("{} special", name(dtype)), {typed(special({301}), dtype)});
    for (const double factor : {0.25, 0x1p+126}) {
      add("AllFinite",
          fmt::format("{} times {}", name(dtype), factor),
          {typed(uniform({70'001}), dtype), typed(number(factor), DType::float32)},
          {{"unscaled", true}});
    }
  }
  add("AllFinite",
      "divided by 1024",
      {typed(uniform({301}, -3e38, 3e38), DType::float32), typed(number(1024), DType::float32)},
      {{"unscaled", true}, {"reciprocal", true}});
  add("AllFinite",
      "several",
      {uniform({3, 5}), typed(uniform({}), DType::float16), indices({2}, 0, 9), uniform({0})});

  for (const bool unscaled : {false, true}) {
    std::vector<Operand> values;
    for (DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
      values.push_back(typed(uniform({90'001}), dtype));
      values.push_back(typed(uniform({3, 5}), dtype));
    }
    values.push_back(typed(uniform({0}), DType::float32));
    const std::vector<DType> norms(values.size(), DType::float32);
    if (unscaled) values.push_back(typed(number(0x1p-7), DType::float32));
    add("SquaredNorms",
        unscaled ? "unscaled" : "several",
        std::move(values),
        {{"Tout", norms}, {"unscaled", unscaled}});
    cases.back().terms = 90'001;
    cases.back().magnitude = 4 * 90'001.0;
  }
  // More than a launch takes.
  add("SquaredNorms",
      "a hundred",
      std::vector<Operand>(100, typed(uniform({7}), DType::float16)),
      {{"Tout", std::vector<DType>(100, DType::float32)}});
  cases.back().terms = 7;
  cases.back().magnitude = 4 * 7;

  const Operand scale = typed(variable({}, 1, 1000), DType::float32);
  const Operand counter = typed(variable({}, 0, 4), DType::int32);
  for (const std::int64_t growth_steps : {1, 2, 2000}) {
    add("UpdateLossScale",
        fmt::format("after {}", growth_steps),
        {scale, counter, counter, flags({})},
        {{"growth_steps", growth_steps}, {"hysteresis", std::int64_t{2}}});
    for (const bool counts_all : {false, true}) {
      add("UpdateLossScale",
          fmt::format("after {} with a counter of {}", growth_steps, counts_all ? "all" : "good"),
          {scale, counter, counter, flags({}), typed(variable({}, 0, 4), DType::int64)},
          {{"growth_steps", growth_steps}, {"counts_all", counts_all}});
    }
  }

  const Operand step = indices({}, 0, 30, DType::int64);
  add("LearningRate", "constant", {step}, {{"base", 0.001}});
  for (const std::string kind :
       {"exponential_decay", "cosine_decay", "inverse_time_decay", "polynomial_decay"}) {
    add("LearningRate",
        kind,
        {step},
        {{"kind", kind},
         {"base", 0.5},
         {"decay_steps", std::int64_t{20}},
         {"decay_rate", 0.75},
         {"warmup_steps", std::int64_t{5}},
         {"warmup_target", 0.5}});
  }
  for (const double t_mul : {1.0, 2.0}) {
    add("LearningRate",
        fmt::format("cosine_decay_restarts of t_mul {}", t_mul),
        {step},
        {{"kind", std::string("cosine_decay_restarts")},
         {"base", 0.5},
         {"decay_steps", std::int64_t{4}},
         {"t_mul", t_mul},
         {"m_mul", 0.5},
         {"alpha", 0.125}});
  }
  add("LearningRate",
      "piecewise_constant",
      {step},
      {{"kind", std::string("piecewise_constant")},
       {"boundaries", std::vector<std::int64_t>{4, 12}},
       {"values", std::vector<double>{1, 0.5, 0.25}}});
  return cases;
}

}  // namespace halfstep::testing

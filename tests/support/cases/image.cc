#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> image_cases() {
  std::vector<OpCase> cases;
  const Operand ordinal = indices({}, 0, 1000, DType::int64);
  for (const Shape& shape : {Shape{9, 4, 5, 3}, Shape{1, 1, 1, 1}}) {
    for (const std::string mode : {"horizontal", "vertical", "horizontal_and_vertical"}) {
      cases.push_back({.name = fmt::format("RandomFlip/{} {}", mode, to_string(shape)),
                       .op = "RandomFlip",
                       .attrs = {{"mode", mode}, {"seed", std::int64_t{3}}},
                       .inputs = {uniform(shape), ordinal}});
    }
    for (const std::string fill : {"constant", "nearest", "reflect", "wrap"}) {
      for (const std::string interpolation : {"nearest", "bilinear"}) {
        cases.push_back({.name = fmt::format(
                             "RandomTranslation/{} {} {}", fill, interpolation, to_string(shape)),
                         .op = "RandomTranslation",
                         .attrs = {{"height_low", -0.4},
                                   {"height_high", 0.3},
                                   {"width_low", -1.5},
                                   {"width_high", 2.5},
                                   {"fill_mode", fill},
                                   {"fill_value", 0.5},
                                   {"interpolation", interpolation}},
                         .inputs = {uniform(shape), ordinal}});
      }
    }
  }
  return cases;
}

}  // namespace halfstep::testing

#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> random_cases() {
  std::vector<OpCase> cases;
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{3, 5, 2}, Shape{20'001}}) {
    // Draws of a rank may begin within a group of four numbers.
    for (const std::int64_t first : {0, 1, 6}) {
      cases.push_back(
          {.name = fmt::format("RandomUniformFromOrdinal/{} from {}", to_string(shape), first),
           .op = "RandomUniformFromOrdinal",
           .attrs = {{"shape", shape},
                     {"seed", std::int64_t{-5}},
                     {"stream", std::int64_t{1} << 40},
                     {"first", first}},
           .inputs = {indices({}, 0, 1000, DType::int64)}});
    }
  }
  return cases;
}

}  // namespace halfstep::testing

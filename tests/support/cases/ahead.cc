#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> ahead_cases() {
  std::vector<OpCase> cases;
  const auto ordinal = [](std::int64_t at) { return indices({}, at, at + 1, DType::int64); };
  for (const DType dtype : {DType::uint8, DType::float32, DType::int32}) {
    for (const std::int64_t at : {0, 2, 9}) {
      cases.push_back({.name = fmt::format("GatherBatch/{} {}", name(dtype), at),
                       .op = "GatherBatch",
                       .attrs = {{"batch", std::int64_t{4}}, {"steps", std::int64_t{3}}},
                       .inputs = {typed(whole({13, 3, 5}, 0, 200), dtype),
                                  indices({13}, 0, 13, DType::int32),
                                  ordinal(at)},
                       .check_gradient = false});
    }
  }
  for (const std::int64_t at : {-1, 1, 8}) {
    for (const Shape& sample : {Shape{13, 3, 5}, Shape{13, 4, 8}}) {
      const auto before = static_cast<double>(at);
      cases.push_back({.name = fmt::format("NextBatch/{} {}", to_string(sample), at),
                       .op = "NextBatch",
                       .attrs = {{"Tout", std::vector<DType>{DType::uint8, DType::int32}},
                                 {"batch", std::int64_t{4}},
                                 {"steps", std::int64_t{3}}},
                       .inputs = {typed(variable({}, before, before), DType::int64),
                                  indices({13}, 0, 13, DType::int32),
                                  typed(whole(sample, 0, 200), DType::uint8),
                                  indices({13}, 0, 9, DType::int32)},
                       .check_gradient = false});
      for (const DType to : {DType::float32, DType::float16, DType::bfloat16}) {
        cases.push_back({.name = fmt::format("NextBatch/{} {} {}", to_string(sample), at, name(to)),
                         .op = "NextBatch",
                         .attrs = {{"Tout", std::vector<DType>{to, DType::int32}},
                                   {"batch", std::int64_t{4}},
                                   {"steps", std::int64_t{3}},
                                   {"scales", std::vector<double>{1.0 / 255, 1}}},
                         .inputs = {typed(variable({}, before, before), DType::int64),
                                    indices({13}, 0, 13, DType::int32),
                                    typed(whole(sample, 0, 255), DType::uint8),
                                    indices({13}, 0, 9, DType::int32)},
                         .check_gradient = false});
      }
    }
  }
  for (const std::int64_t at : {0, 6}) {
    cases.push_back({.name = fmt::format("LogScalars/{}", at),
                     .op = "LogScalars",
                     .attrs = {{"slots", std::int64_t{4}}},
                     .inputs = {typed(variable({4 * 3 * 8}, 0, 200), DType::uint8),
                                ordinal(at),
                                typed(uniform({}), DType::float32),
                                flags({}),
                                indices({}, 0, 99, DType::int64)},
                     .check_gradient = false});
  }
  // One of these is taken; which, the random flags say.
  for (const char* name : {"KeepState/a", "KeepState/b", "KeepState/c", "KeepState/d"}) {
    for (const std::int64_t taken : {0, 1}) {
      const auto low = static_cast<double>(taken);
      cases.push_back({.name = fmt::format("{}{}", name, taken),
                       .op = "KeepState",
                       .attrs = {{"slots", std::int64_t{4}}},
                       .inputs = {typed(variable({601}, 0, 200), DType::uint8),
                                  typed(variable({}, low, low), DType::boolean),
                                  typed(whole({601}, 0, 200), DType::uint8),
                                  flags({}),
                                  typed(variable({4 * 2 * 8}, 0, 200), DType::uint8),
                                  ordinal(6),
                                  typed(uniform({}), DType::float32),
                                  flags({})},
                       .check_gradient = false});
    }
  }
  return cases;
}

}  // namespace halfstep::testing

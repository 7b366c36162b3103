#include "graph/ops/window.h"
#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> pooling_cases() {
  using Ints = std::vector<std::int64_t>;
  struct Pool {
    std::string_view name;
    Shape x;
    Ints size, strides;
    std::string_view padding = "VALID";
  };
  const Pool pools[] = {
      {"one cell", {1, 1, 1, 1}, {1, 1}, {1, 1}},
      {"halves", {2, 4, 6, 3}, {2, 2}, {2, 2}},
      {"odd sides, same", {1, 5, 7, 2}, {2, 2}, {2, 2}, "SAME"},
      {"overlapping", {2, 6, 5, 2}, {3, 3}, {2, 1}},
      {"stride past the window, same", {1, 8, 7, 2}, {1, 2}, {3, 4}, "SAME"},
      {"window larger than the input", {1, 2, 3, 2}, {5, 4}, {1, 1}, "SAME"},
      {"all of it", {2, 5, 4, 3}, {5, 4}, {1, 1}},
  };
  std::vector<OpCase> cases;
  for (const Pool& pool : pools) {
    const graph::Attrs attrs{{"ksize", Ints{1, pool.size[0], pool.size[1], 1}},
                             {"strides", Ints{1, pool.strides[0], pool.strides[1], 1}},
                             {"padding", std::string(pool.padding)}};
    const graph::ops::Window window = graph::ops::pool_window(attrs, pool.x);
    const Shape y{pool.x[0], window.height.output, window.width.output, pool.x[3]};
    const std::int64_t cells = pool.size[0] * pool.size[1];
    const auto add =
        [&](std::string_view op, std::string_view suffix, std::vector<Operand> inputs) {
          cases.push_back({.name = fmt::format("{}/{}{}", op, pool.name, suffix),
                           .op = std::string(op),
                           .attrs = attrs,
                           .inputs = std::move(inputs),
                           .terms = cells + 2,
                           .magnitude = 2.0 * static_cast<double>(cells)});
        };
    add("MaxPool", "", {distinct(pool.x)});
    add("MaxPool", ", special", {special(pool.x)});
    cases.back().check_gradient = false;
    // Equal cells, so that the pooled tensor is known and the first cell takes the gradient.
    add("MaxPoolGrad", "", {uniform(pool.x, 1, 1), uniform(y, 1, 1), uniform(y)});
    add("AvgPool", "", {uniform(pool.x)});
    add("AvgPoolGrad", "", {ints({pool.x.begin(), pool.x.end()}), uniform(y)});
  }
  return cases;
}

}  // namespace halfstep::testing

#include <tuple>

#include "support/op_cases.h"

namespace halfstep::testing {

std::vector<OpCase> softmax_cases() {
  std::vector<OpCase> cases;
  for (std::string_view op : {"Softmax", "LogSoftmax"}) {
    const auto add = [&](std::string_view what, Operand x, double magnitude = 8) {
      cases.push_back({.name = fmt::format("{}/{}", op, what),
                       .op = std::string(op),
                       .inputs = {std::move(x)},
                       .terms = 16,
                       .magnitude = magnitude});
    };
    add("digits", uniform({5, 10}));
    add("vector", uniform({7}));
    add("rank 3", uniform({2, 3, 9}));
    add("one class", uniform({4, 1}));
    add("wide", uniform({3, 1001}));
    add("no rows", uniform({0, 4}));
    add("far apart", uniform({6, 5}, -60, 60), 128);
    cases.push_back({.name = fmt::format("{}/special", op),
                     .op = std::string(op),
                     .inputs = {special({9, 5})},
                     .terms = 16,
                     .check_gradient = false});
  }
  const auto dense = [&](std::string_view what, Operand logits, Operand labels, double magnitude) {
    cases.push_back(
        {.name = fmt::format("SoftmaxCrossEntropyWithLogits/{}", what),
         .op = "SoftmaxCrossEntropyWithLogits",
         .inputs = {std::move(logits), std::move(labels)},
         .terms = 64,
         .magnitude = magnitude,
         // The rule gives softmax - labels, which is the gradient where labels sum to 1.
         .check_gradient = false});
  };
  dense("digits", uniform({5, 10}), uniform({5, 10}, 0, 0.2), 16);
  dense("one class", uniform({3, 1}), uniform({3, 1}, 1, 1), 16);
  dense("far apart", uniform({6, 5}, -60, 60), uniform({6, 5}, 0, 0.4), 256);
  dense("special", special({9, 5}), uniform({9, 5}, 0.1, 0.4), 16);
  // One class: labels of 1 sum to 1.
  cases.push_back({.name = "SoftmaxCrossEntropyWithLogits/two classes",
                   .op = "SoftmaxCrossEntropyWithLogits",
                   .inputs = {uniform({7, 2}), uniform({7, 2}, 0.5, 0.5)},
                   .terms = 16});
  const auto sparse = [&](std::string_view what, Operand logits, Operand labels, bool slope) {
    cases.push_back({.name = fmt::format("SparseSoftmaxCrossEntropyWithLogits/{}", what),
                     .op = "SparseSoftmaxCrossEntropyWithLogits",
                     .inputs = {std::move(logits), std::move(labels)},
                     .terms = 16,
                     .magnitude = 256,
                     .check_gradient = slope});
  };
  sparse("int32", uniform({6, 10}), indices({6}, 0, 10), true);
  sparse("int64", uniform({6, 10}), indices({6}, 0, 10, DType::int64), true);
  sparse("wide", uniform({3, 1001}), indices({3}, 0, 1001), true);
  sparse("one class", uniform({3, 1}), indices({3}, 0, 1), true);
  sparse("far apart", uniform({6, 5}, -60, 60), indices({6}, 0, 5), true);
  sparse("labels that do not exist", uniform({9, 5}), indices({9}, -3, 8), false);
  sparse("special", special({9, 5}), indices({9}, 0, 5), false);
  for (const auto& [what, rows, classes] : {std::tuple("digits", 50, 10),
                                            std::tuple("one class", 3, 1),
                                            std::tuple("wide", 5, 300),
                                            std::tuple("many rows", 700, 3)}) {
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      cases.push_back(
          {.name = fmt::format("SoftmaxLoss/{}, {}", what, name(dtype)),
           .op = "SoftmaxLoss",
           .attrs = {{"forms", std::string("plmcg")},
                     {"Tresults",
                      std::vector<DType>{
                          DType::float32, DType::float32, DType::float32, DType::float32, dtype}}},
           .inputs = {typed(distinct({rows, classes}, -4, 4), dtype),
                      indices({rows}, 0, classes),
                      typed(number(1024), DType::float32)},
           .terms = 64,
           .magnitude = 64,
           .check_gradient = false});
    }
  }
  for (const DType dtype : {DType::bfloat16, DType::float16}) {
    cases.push_back(
        {.name = fmt::format("SoftmaxLoss/longer rows, {}", name(dtype)),
         .op = "SoftmaxLoss",
         .attrs = {{"forms", std::string("pmcg")},
                   {"classes", std::int64_t{10}},
                   {"Tresults",
                    std::vector<DType>{DType::float32, DType::float32, DType::float32, dtype}}},
         .inputs = {typed(distinct({50, 16}, -4, 4), dtype),
                    indices({50}, 0, 10),
                    typed(number(1024), DType::float32)},
         .terms = 64,
         .magnitude = 64,
         .check_gradient = false});
  }
  return cases;
}

}  // namespace halfstep::testing

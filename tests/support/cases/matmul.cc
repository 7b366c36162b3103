#include "support/op_cases.h"

namespace halfstep::testing {
namespace {

Shape matrix(std::int64_t rows, std::int64_t columns, bool transposed) {
  return transposed ? Shape{columns, rows} : Shape{rows, columns};
}

}  // namespace

std::vector<OpCase> matmul_cases() {
  std::vector<OpCase> cases;
  struct Sizes {
    std::int64_t rows, depth, columns;
  };
  for (const auto& [m, k, n] : {Sizes{1, 1, 1},
                                Sizes{3, 5, 7},
                                Sizes{17, 33, 65},
                                Sizes{64, 32, 16},
                                Sizes{1, 40, 1},
                                Sizes{2, 1, 130},
                                Sizes{4, 0, 3},
                                Sizes{0, 4, 3},
                                Sizes{5, 1031, 3},
                                Sizes{9, 6, 31}}) {
    for (const auto& [ta, tb] :
         {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
      cases.push_back(
          {.name = fmt::format("MatMul/{}x{}x{}{}{}", m, k, n, ta ? " a'" : "", tb ? " b'" : ""),
           .op = "MatMul",
           .attrs = {{"transpose_a", ta}, {"transpose_b", tb}},
           .inputs = {uniform(matrix(m, k, ta), -1, 1), uniform(matrix(k, n, tb), -1, 1)},
           .terms = k,
           .magnitude = static_cast<double>(k)});
    }
  }
  cases.push_back({.name = "MatMul/special",
                   .op = "MatMul",
                   .inputs = {special({9, 9}), uniform({9, 4})},
                   .check_gradient = false});
  struct Batch {
    std::string_view what;
    Shape x, y;
    bool tx = false, ty = false;
  };
  for (const Batch& b : {Batch{"plain", {2, 3, 5}, {2, 5, 4}},
                         Batch{"one matrix", {3, 5}, {5, 4}},
                         Batch{"adjoint x", {2, 5, 3}, {2, 5, 4}, true},
                         Batch{"adjoint y", {2, 3, 5}, {2, 4, 5}, false, true},
                         Batch{"both", {2, 5, 3}, {2, 4, 5}, true, true},
                         Batch{"broadcast", {2, 1, 3, 5}, {4, 5, 2}},
                         Batch{"shared", {3, 2, 6}, {6, 2}},
                         Batch{"attention", {2, 3, 17, 8}, {2, 3, 17, 8}, false, true}}) {
    cases.push_back({.name = fmt::format("BatchMatMulV2/{}", b.what),
                     .op = "BatchMatMulV2",
                     .attrs = {{"adj_x", b.tx}, {"adj_y", b.ty}},
                     .inputs = {uniform(b.x, -1, 1), uniform(b.y, -1, 1)},
                     .terms = 8,
                     .magnitude = 8});
  }
  struct Bias {
    std::string_view what;
    Shape x;
    std::int64_t channels;
    std::string format = "NHWC";
  };
  for (const Bias& b : {Bias{"matrix", {5, 7}, 7},
                        Bias{"image", {2, 3, 5, 4}, 4},
                        Bias{"channels first", {2, 3, 5, 4}, 3, "NCHW"},
                        Bias{"wide", {3, 130}, 130},
                        Bias{"long", {3001, 2}, 2},
                        Bias{"no rows", {0, 6}, 6}}) {
    cases.push_back({.name = fmt::format("BiasAdd/{}", b.what),
                     .op = "BiasAdd",
                     .attrs = {{"data_format", b.format}},
                     .inputs = {uniform(b.x), uniform({b.channels})}});
    for (const char* op : {"BiasAddGrad", "CastBiasAddGrad"}) {
      cases.push_back({.name = fmt::format("{}/{}", op, b.what),
                       .op = op,
                       .attrs = {{"data_format", b.format}},
                       .inputs = {uniform(b.x)},
                       .terms = b.x.elements() / b.channels,
                       .magnitude = 256});
    }
  }
  return cases;
}

}  // namespace halfstep::testing

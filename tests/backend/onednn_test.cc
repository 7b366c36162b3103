// The oneDNN kernels against the reference.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string_view>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernels.h"
#include "graph/ops/ops.h"
#include "support/kernels.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

std::vector<OpCase> matmul_shapes() {
  struct Size {
    std::int64_t m, k, n;
  };
  std::vector<OpCase> cases;
  for (const Size& s : {Size{1, 1, 1}, {7, 13, 5}, {64, 33, 10}, {130, 257, 65}, {1100, 40, 48}}) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        cases.push_back({.name = fmt::format("MatMul/{}x{}x{}{}{}",
                                             s.m,
                                             s.k,
                                             s.n,
                                             ta ? " transposed a" : "",
                                             tb ? " transposed b" : ""),
                         .op = "MatMul",
                         .attrs = {{"transpose_a", ta}, {"transpose_b", tb}},
                         .inputs = {uniform(ta ? Shape{s.k, s.m} : Shape{s.m, s.k}),
                                    uniform(tb ? Shape{s.n, s.k} : Shape{s.k, s.n})},
                         .terms = s.k,
                         .magnitude = 4 * std::sqrt(static_cast<double>(s.k))});
      }
    }
  }
  return cases;
}

}  // namespace

TEST_CASE("onednn rows: each takes part of the cases and agrees with the reference") {
  std::vector<OpCase> cases = all_kernel_cases();
  for (OpCase& c : matmul_shapes()) cases.push_back(std::move(c));
  // Products that overflow float32 with both signs have no sum there, as they have in float64.
  std::erase_if(cases, [](const OpCase& c) { return c.name == "MatMul/special"; });
  const backend::Backend cpu = backend::cpu_backend(2);
  for (const backend::Kernel& kernel : backend::cpu::onednn_kernels()) {
    CAPTURE(kernel.op);
    CAPTURE(kernel.name);
    const graph::OpDef* op = graph::op_table().find(kernel.op);
    CHECK((op != nullptr && op->infer != nullptr));
    CHECK(kernel.name.starts_with("onednn/"));
    CHECK(check_against_reference(kernel, cpu.capabilities, cases) > 0);
  }
}

TEST_CASE("onednn: infinity and NaN reach all results they belong to, and no others") {
  const backend::Backend cpu = backend::cpu_backend(2);
  const std::int64_t m = 40, k = 70, n = 33;
  const OpCase c{.name = "MatMul/not finite",
                 .op = "MatMul",
                 .inputs = {uniform({m, k}, 0.5, 1), uniform({k, n}, 0.5, 1)}};
  const double inf = std::numeric_limits<double>::infinity();
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    for (const backend::Kernel& kernel : backend::cpu::onednn_kernels()) {
      BuiltCase built = build(c, dtype);
      const OneKernel one(kernel, cpu.capabilities);
      if (!one.takes(built)) continue;
      CAPTURE(name(dtype));
      CAPTURE(kernel.name);
      Tensor& a = built.feeds.at(built.graph.node(built.inputs[0].node).name);
      const auto put = [&](std::int64_t row, std::int64_t column, double value) {
        Tensor one_element(DType::float64, {1});
        *one_element.as<double>() = value;
        const std::size_t at = static_cast<std::size_t>(row * k + column) * size_bytes(a.dtype());
        convert(one_element.view(), {a.dtype(), {1}, static_cast<std::byte*>(a.view().data) + at});
      };
      put(3, 5, inf);
      put(17, 69, -inf);
      put(39, 0, std::numeric_limits<double>::quiet_NaN());
      const std::vector<Tensor> y = one.run(built);
      for (std::int64_t i = 0; i < m * n; ++i) {
        const double got = element_as_double(y[0].view(), i);
        const std::int64_t row = i / n;
        CAPTURE(row);
        if (row == 3) {
          CHECK(got == inf);
        } else if (row == 17) {
          CHECK(got == -inf);
        } else {
          CHECK(std::isnan(got) == (row == 39));
        }
      }
    }
  }
}

TEST_CASE("onednn: a launch runs again on other memory") {
  const backend::Backend cpu = backend::cpu_backend(2);
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    CAPTURE(name(dtype));
    BuiltCase built = build(matmul_shapes()[8], dtype);
    const backend::NodeView node{built.graph, built.graph.node(built.node)};
    const backend::Kernel* kernel = backend::choose(cpu, node).kernel;
    REQUIRE(kernel != nullptr);
    REQUIRE(kernel->name.starts_with("onednn/"));
    const backend::Prepared prepared = kernel->prepare(node, cpu.capabilities);
    std::vector<Tensor> results;
    for (int repetition = 0; repetition < 2; ++repetition) {
      std::vector<Tensor> in;
      for (const auto& [key, tensor] : built.feeds) in.push_back(tensor.clone());
      const AlignedBuffer workspace(prepared.workspace_bytes);
      results.emplace_back(node.output().dtype, node.output().shape);
      const TensorView views[] = {in[0].view(), in[1].view()};
      const TensorView out[] = {results.back().view()};
      prepared.launch->run({views, out, workspace.data()});
    }
    const Comparison same = compare_bits(results[0].view(), results[1].view());
    CHECK_MESSAGE(same, same.text);
  }
}

}  // namespace halfstep::testing

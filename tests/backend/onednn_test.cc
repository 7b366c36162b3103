// The oneDNN kernels against the reference.

#include "backend/cpu/onednn/onednn.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cpu/kernels.h"
#include "backend/cpu/processor.h"
#include "fixture.h"
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
  for (const Size& s :
       {Size{1, 1, 1}, {7, 13, 5}, {64, 33, 10}, {130, 257, 65}, {17, 21, 512}, {1100, 40, 48}}) {
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

/// Rows for AMX, which other processors run on the instructions they have.

/// As if there was AMX; oneDNN computes with bfloat16 wherever there is AVX-512.
std::optional<backend::Capabilities> assumed_amx() {
  backend::Capabilities capabilities = backend::cpu_backend(2).capabilities;
  if (capabilities.isa < backend::Isa::avx512) return std::nullopt;
  capabilities.isa = backend::Isa::amx;
  return capabilities;
}

/// Convolutions in the order x, filter, with both gradients, of few and of odd channels.
/// Whether oneDNN's pairs are whole: of channels in the sums of an ungrouped Conv2D and its input
/// gradient, of columns in those of a filter gradient of one channel.
bool sums_whole_pairs(const BuiltCase& built) {
  const graph::Node& node = built.graph.node(built.node);
  const auto shape = [&](std::size_t i) { return built.graph.type(node.inputs[i]).shape; };
  if (node.op == "Conv2DBackpropFilter") return shape(0)[3] != 1 || shape(2)[2] % 2 == 0;
  return shape(1)[node.op == "Conv2DBackpropInput" ? 3 : 2] % 2 == 0;
}

std::vector<OpCase> halved_cases(std::int64_t products) {
  std::vector<OpCase> cases;
  for (const OpCase& c : more_conv_cases()) {
    if (!c.op.starts_with("Conv2D")) continue;
    cases.push_back(c);
    cases.back().attrs.set("float16_products", products);
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
    if (by_halves(kernel)) continue;
    CHECK(check_against_reference(kernel, cpu.capabilities, cases) > 0);
  }
}

TEST_CASE("onednn: a float16 convolution in halves errs by what it leaves out and float32 sums") {
  const auto capabilities = assumed_amx();
  if (!capabilities) return;
  for (const std::int64_t products : {3, 4}) {
    CAPTURE(products);
    int taken = 0;
    for (const OpCase& c : halved_cases(products)) {
      for (const backend::Kernel& kernel : backend::cpu::onednn_kernels()) {
        if (!by_halves(kernel) || kernel.op != c.op) continue;
        CAPTURE(c.name);
        BuiltCase narrow = build(c, DType::float16);
        const OneKernel one(kernel, *capabilities);
        const bool grouped = c.name.find("group") != std::string::npos;
        // With real AMX instructions more shapes are refused: oneDNN has them wrong.
        const bool real_amx = backend::cpu::onednn::effective_isa() >= backend::Isa::amx;
        const bool taken_by_rule = !grouped && sums_whole_pairs(narrow);
        if (!taken_by_rule || !real_amx) REQUIRE(one.takes(narrow) == taken_by_rule);
        if (!one.takes(narrow)) continue;
        ++taken;
        BuiltCase wide = build(c, DType::float64, DType::float16);
        const Tensor got = std::move(one.run(narrow)[0]);
        const Tensor want = std::move(run(wide, backend::cpu_reference())[0]);
        const Tensor magnitude = magnitudes(c);
        // Each half of a number is at most 2^-9 of it below the other.
        const double left_out = products == 3 ? 0x1p-17 : 0;
        const double sums = static_cast<double>(products * c.terms) * 0x1p-23;
        std::int64_t misses = 0;
        for (std::int64_t i = 0; i < want.shape().elements(); ++i) {
          const double w = want.as<double>()[i];
          const double allowed = tolerance(DType::float16, DType::float32, 1, std::abs(w), w) +
                                 (left_out + sums) * magnitude.as<double>()[i];
          const double error = std::abs(element_as_double(got.view(), i) - w);
          if (!(error <= allowed)) ++misses;
        }
        CHECK(misses == 0);
      }
    }
    CHECK(taken >= 3);
  }
}

TEST_CASE("onednn: exact products of halves keep low by low, others do not; infinities stay") {
  const auto capabilities = assumed_amx();
  if (!capabilities) return;
  const float a = 1 + 0x1p-9F;
  for (const backend::Kernel& kernel : backend::cpu::onednn_kernels()) {
    if (!by_halves(kernel) || kernel.op != "Conv2D") continue;
    for (const std::int64_t products : {3, 4}) {
      // In two channels, a a - (a a without low by low), and infinity in another pixel.
      constexpr std::size_t k_channels = 16;
      const OpCase c{
          .name = "Conv2D/halves",
          .op = "Conv2D",
          .attrs = {{"strides", std::vector<std::int64_t>{1, 1, 1, 1}},
                    {"padding", std::string("VALID")},
                    {"float16_products", products}},
          .inputs = {uniform({1, 2, 2, k_channels}), uniform({1, 1, k_channels, k_channels})}};
      BuiltCase built = build(c, DType::float16);
      const auto feed = [&](std::size_t input, std::vector<std::pair<std::size_t, float>> numbers) {
        Tensor& t = built.feeds.at(built.graph.node(built.inputs[input].node).name);
        std::memset(t.view().data, 0, t.bytes());
        for (const auto& [i, number] : numbers) t.as<float16>()[i] = float16(number);
      };
      feed(0, {{0, a}, {1, 1}, {k_channels, std::numeric_limits<float>::infinity()}});
      feed(1, {{0, a}, {k_channels, -(1 + 0x1p-8F)}});
      REQUIRE(OneKernel(kernel, *capabilities).takes(built));
      const Tensor y = std::move(OneKernel(kernel, *capabilities).run(built)[0]);
      CHECK(element_as_double(y.view(), 0) == (products == 4 ? 0x1p-18 : 0));
      CHECK_FALSE(std::isfinite(element_as_double(y.view(), k_channels)));
    }
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

// Channels that do not fill a block, of one pixel: libraries pad them, or go on into the next
// pixel.
TEST_CASE(
    "onednn: infinity and NaN of a pixel reach its convolution and gradients, and no others") {
  const backend::Backend cpu = backend::cpu_backend(2), reference = backend::cpu_reference();
  struct Sizes {
    std::int64_t inputs, outputs, window, groups = 1;
  };
  int compared = 0;
  for (const Sizes& s : {Sizes{48, 80, 1},
                         {80, 48, 1},
                         {48, 80, 3},
                         {33, 70, 1},
                         {33, 70, 3},
                         {3, 16, 3},
                         {5, 17, 2},
                         {16, 17, 1},
                         {1, 16, 3},
                         {6, 16, 3, 2},
                         {66, 70, 1, 2},
                         {16, 16, 3, 16},
                         {5, 10, 3, 5},
                         {1, 4, 3, 1},
                         {33, 66, 1, 33}}) {
    const Shape x{2, 5, 4, s.inputs}, filter{s.window, s.window, s.inputs / s.groups, s.outputs};
    const Shape y{2, 5, 4, s.outputs};
    const auto shape_of = [](const Shape& shape) { return ints({shape.begin(), shape.end()}); };
    const auto positive = [](const Shape& shape) { return uniform(shape, 0.5, 1); };
    const std::pair<std::string, std::vector<Operand>> ops[] = {
        {"Conv2D", {positive(x), positive(filter)}},
        {"Conv2DBackpropInput", {shape_of(x), positive(filter), positive(y)}},
        {"Conv2DBackpropFilter", {positive(x), shape_of(filter), positive(y)}},
        {"DepthwiseConv2dNative",
         {positive(x), positive({s.window, s.window, s.inputs, s.outputs / s.inputs})}}};
    for (const auto& [op, inputs] : ops) {
      if (op.starts_with("Depthwise") && s.groups != s.inputs) continue;
      const OpCase c{.name = op + "/not finite",
                     .op = op,
                     .attrs = {{"strides", std::vector<std::int64_t>{1, 1, 1, 1}},
                               {"padding", std::string("SAME")}},
                     .inputs = inputs};
      for (DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
        for (const backend::Kernel& kernel : backend::cpu::onednn_kernels()) {
          BuiltCase built = build(c, dtype);
          const OneKernel one(kernel, cpu.capabilities);
          if (kernel.op != op || !one.takes(built)) continue;
          CAPTURE(op);
          CAPTURE(name(dtype));
          CAPTURE(kernel.name);
          CAPTURE(s.inputs);
          CAPTURE(s.outputs);
          CAPTURE(s.window);
          CAPTURE(s.groups);
          const std::size_t images = op == "Conv2DBackpropInput" ? 2 : 0;
          Tensor& t = built.feeds.at(built.graph.node(built.inputs[images].node).name);
          const std::int64_t channels = t.shape().elements() / 40;
          const auto put = [&](std::int64_t pixel, std::int64_t channel, double value) {
            Tensor number(DType::float64, {1});
            *number.as<double>() = value;
            const std::size_t at =
                static_cast<std::size_t>(pixel * channels + channel) * size_bytes(t.dtype());
            convert(number.view(), {t.dtype(), {1}, static_cast<std::byte*>(t.view().data) + at});
          };
          put(7, 0, std::numeric_limits<double>::infinity());
          put(31,
              std::min<std::int64_t>(3, channels - 1),
              std::numeric_limits<double>::quiet_NaN());
          const std::vector<Tensor> got = one.run(built);
          const std::vector<Tensor> want = run(built, reference);
          std::int64_t differ = 0;
          for (std::int64_t i = 0; i < got[0].shape().elements(); ++i) {
            const double a = element_as_double(got[0].view(), i);
            const double b = element_as_double(want[0].view(), i);
            if (std::isfinite(a) != std::isfinite(b)) ++differ;
          }
          CHECK(differ == 0);
          ++compared;
        }
      }
    }
  }
  CHECK(compared > 0);
}

TEST_CASE("onednn: a filter gradient does not read pixels that no tap covers") {
  const backend::Backend cpu = backend::cpu_backend(2);
  // One output column over columns 0 and 1 of four; a stride further are columns 3 and 4.
  const OpCase c{
      .name = "Conv2DBackpropFilter/one column",
      .op = "Conv2DBackpropFilter",
      .attrs = {{"strides", std::vector<std::int64_t>{1, 1, 3, 1}},
                {"padding", std::string("VALID")}},
      .inputs = {
          uniform({2, 3, 4, 1}, 0.5, 1), ints({1, 2, 1, 16}), uniform({2, 3, 1, 16}, 0.5, 1)}};
  int compared = 0;
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16}) {
    for (const backend::Kernel& kernel : backend::cpu::onednn_kernels()) {
      BuiltCase built = build(c, dtype);
      const OneKernel one(kernel, cpu.capabilities);
      if (kernel.op != c.op || !one.takes(built)) continue;
      CAPTURE(name(dtype));
      CAPTURE(kernel.name);
      Tensor& x = built.feeds.at(built.graph.node(built.inputs[0].node).name);
      for (std::int64_t row = 0; row < 6; ++row) {
        Tensor nan(DType::float64, {1});
        *nan.as<double>() = std::numeric_limits<double>::quiet_NaN();
        const std::size_t at = static_cast<std::size_t>(row * 4 + 3) * size_bytes(dtype);
        convert(nan.view(), {dtype, {1}, static_cast<std::byte*>(x.view().data) + at});
      }
      const std::vector<Tensor> dw = one.run(built);
      for (std::int64_t i = 0; i < 32; ++i)
        CHECK(std::isfinite(element_as_double(dw[0].view(), i)));
      ++compared;
    }
  }
  CHECK(compared > 0);
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

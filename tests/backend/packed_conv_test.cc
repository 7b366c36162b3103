// Convolutions on matrix units against the reference. Processors without them skip these tests.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <string_view>

#include "backend/cpu/kernels.h"
#include "fixture.h"
#include "support/kernels.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using Ints = std::vector<std::int64_t>;

bool is_conv(const backend::Kernel& kernel) { return kernel.name.starts_with("packed/conv amx"); }

struct Conv {
  std::string_view name;
  Shape x, filter;
  Ints strides{1, 1}, dilations{1, 1};
  std::string_view padding = "SAME";
  Ints explicit_paddings{};
};

const Conv k_convs[] = {
    {"one of everything", {1, 1, 1, 1}, {1, 1, 1, 1}},
    {"first layer, strides", {5, 28, 28, 1}, {5, 5, 1, 16}, {2, 2}, {1, 1}, "VALID"},
    {"first layer, same", {3, 28, 28, 1}, {3, 3, 1, 32}},
    {"one channel, wide taps", {2, 9, 40, 1}, {2, 37, 1, 5}},
    {"one channel, wide taps, strides", {2, 9, 80, 1}, {3, 70, 1, 5}, {1, 3}},
    {"one channel, dilations", {2, 15, 17, 1}, {3, 3, 1, 7}, {1, 1}, {2, 3}},
    {"one channel, dilations and strides", {2, 15, 17, 1}, {3, 3, 1, 7}, {2, 2}, {3, 2}},
    {"three channels", {3, 16, 15, 3}, {3, 3, 3, 32}},
    {"three channels, strides", {3, 16, 15, 3}, {7, 7, 3, 24}, {2, 2}},
    {"three channels, few outputs", {3, 11, 37, 3}, {2, 3, 3, 17}, {1, 2}},
    {"32 channels", {3, 26, 26, 32}, {3, 3, 32, 64}, {1, 1}, {1, 1}, "VALID"},
    {"small images", {21, 7, 7, 64}, {3, 3, 64, 48}},
    {"tiny images", {37, 2, 3, 40}, {3, 3, 40, 17}},
    {"16 channels", {3, 28, 28, 16}, {3, 3, 16, 16}},
    {"16 channels, strides", {3, 28, 28, 16}, {3, 3, 16, 32}, {2, 2}},
    {"one by one, strides", {3, 28, 28, 16}, {1, 1, 16, 32}, {2, 2}, {1, 1}, "VALID"},
    {"one by one", {3, 6, 7, 65}, {1, 1, 65, 33}},
    {"strides of 3", {2, 14, 17, 33}, {3, 2, 33, 34}, {3, 3}},
    {"strides of 2 and 3", {2, 14, 17, 33}, {5, 4, 33, 18}, {2, 3}, {1, 1}, "VALID"},
    {"strides and dilations", {2, 20, 19, 34}, {3, 3, 34, 20}, {2, 3}, {3, 2}},
    {"stride past the window", {2, 17, 18, 32}, {2, 1, 32, 32}, {4, 3}, {1, 1}, "VALID"},
    {"window larger than the image", {2, 3, 4, 32}, {5, 7, 32, 32}},
    {"even window", {2, 9, 10, 32}, {2, 4, 32, 16}},
    {"explicit",
     {2, 9, 10, 32},
     {3, 3, 32, 32},
     {1, 1},
     {1, 1},
     "EXPLICIT",
     {0, 0, 3, 2, 0, 4, 0, 0}},
    {"explicit, strides",
     {2, 9, 10, 6},
     {3, 3, 6, 35},
     {2, 3},
     {1, 1},
     "EXPLICIT",
     {0, 0, 5, 0, 1, 2, 0, 0}},
};

std::vector<OpCase> conv_cases() {
  std::vector<OpCase> cases;
  const backend::Backend reference = backend::cpu_reference();
  for (const Conv& conv : k_convs) {
    graph::Attrs attrs{{"strides", Ints{1, conv.strides[0], conv.strides[1], 1}},
                       {"dilations", Ints{1, conv.dilations[0], conv.dilations[1], 1}},
                       {"padding", std::string(conv.padding)}};
    if (!conv.explicit_paddings.empty()) attrs.set("explicit_paddings", conv.explicit_paddings);
    const Shape& f = conv.filter;
    const OpCase c{.name = fmt::format("Conv2D/{}", conv.name),
                   .op = "Conv2D",
                   .attrs = attrs,
                   .inputs = {uniform(conv.x), uniform(f)}};
    const BuiltCase forward = build(c, DType::float32);
    const Shape y = forward.graph.node(forward.node).outputs[0].shape;
    const auto sizes = [](const Shape& s) { return ints(Ints(s.begin(), s.end())); };
    const auto add = [&](std::string_view suffix, std::vector<Operand> inputs, std::int64_t terms) {
      OpCase copy = c;
      copy.op = "Conv2D" + std::string(suffix);
      copy.name = fmt::format("{}/{}", copy.op, conv.name);
      copy.inputs = std::move(inputs);
      copy.terms = terms + 8;
      copy.magnitude = 4 * std::sqrt(static_cast<double>(terms));
      cases.push_back(std::move(copy));
    };
    const std::int64_t taps = f[0] * f[1];
    add("", c.inputs, taps * f[2]);
    add("Bias", {c.inputs[0], c.inputs[1], uniform({f[3]})}, taps * f[2] + 1);
    add("BackpropInput", {sizes(conv.x), uniform(f), uniform(y)}, taps * f[3]);
    add("BackpropFilter", {uniform(conv.x), sizes(f), uniform(y)}, y[0] * y[1] * y[2]);
  }
  for (OpCase& c : more_conv_cases()) {
    if (c.op.starts_with("Conv2D")) cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace

TEST_CASE("packed conv: bfloat16 agrees with the reference, for each number of threads") {
  const std::vector<OpCase> cases = conv_cases();
  for (const int threads : {1, 2, 3}) {
    const backend::Backend cpu = backend::cpu_backend(threads);
    if (cpu.capabilities.isa < backend::Isa::amx) return;
    for (const backend::Kernel& kernel : backend::cpu::packed_kernels()) {
      if (!is_conv(kernel) || by_halves(kernel)) continue;
      CHECK(check_against_reference(kernel, cpu.capabilities, cases) > 15);
    }
  }
  backend::cpu_backend(2);
}

TEST_CASE("packed conv: few terms in float32 agree with the reference") {
  const std::vector<OpCase> cases = conv_cases();
  for (const int threads : {1, 2, 3}) {
    const backend::Backend cpu = backend::cpu_backend(threads);
    if (cpu.capabilities.isa < backend::Isa::avx512) return;
    for (const backend::Kernel& kernel : backend::cpu::packed_kernels()) {
      if (!is_direct(kernel)) continue;
      CHECK(check_against_reference(kernel, cpu.capabilities, cases) > 10);
    }
  }
  backend::cpu_backend(2);
}

TEST_CASE("packed conv: float16 in halves errs by what it leaves out and float32 sums") {
  const backend::Backend cpu = backend::cpu_backend(2);
  if (cpu.capabilities.isa < backend::Isa::amx) return;
  for (const std::int64_t products : {3, 4}) {
    CAPTURE(products);
    for (OpCase c : conv_cases()) {
      c.attrs.set("float16_products", products);
      for (const backend::Kernel& kernel : backend::cpu::packed_kernels()) {
        if (!is_conv(kernel) || !by_halves(kernel) || kernel.op != c.op) continue;
        CAPTURE(c.name);
        BuiltCase narrow = build(c, DType::float16);
        const OneKernel one(kernel, cpu.capabilities);
        // With one position of y the gradients sum too few, or compute many positions of x from it.
        const bool left = c.name.find("group") != std::string::npos ||
                          c.name == "Conv2DBackpropFilter/one of everything" ||
                          (c.name.starts_with("Conv2DBackprop") &&
                           c.name.ends_with("window as large as the input"));
        REQUIRE(one.takes(narrow) == !left);
        if (left) continue;
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
          if (!(std::abs(element_as_double(got.view(), i) - w) <= allowed)) ++misses;
        }
        CHECK(misses == 0);
      }
    }
  }
}

TEST_CASE("packed conv: infinity and NaN reach the results they belong to, and no others") {
  const backend::Backend cpu = backend::cpu_backend(2);
  if (cpu.capabilities.isa < backend::Isa::amx) return;
  for (const backend::Kernel& kernel : backend::cpu::packed_kernels()) {
    if ((!is_conv(kernel) && !is_direct(kernel)) || kernel.op == "Conv2DBackpropFilter") continue;
    for (OpCase c : conv_cases()) {
      if (c.op != kernel.op) continue;
      const DType dtype = by_halves(kernel) ? DType::float16 : DType::bfloat16;
      BuiltCase narrow = build(c, dtype);
      const OneKernel one(kernel, cpu.capabilities);
      if (!one.takes(narrow)) continue;
      BuiltCase wide = build(c, DType::float64, dtype);
      // Some pixels that are not finite, in x or dy.
      for (BuiltCase* built : {&narrow, &wide}) {
        const std::size_t port = c.op == "Conv2DBackpropInput" ? 2 : 0;
        Tensor& x = built->feeds.at(built->graph.node(built->inputs[port].node).name);
        const std::int64_t n = x.shape().elements();
        const auto put = [&](std::int64_t i, double value) {
          Tensor number(DType::float64, {1});
          *number.as<double>() = value;
          const std::size_t at = static_cast<std::size_t>(i) * size_bytes(x.dtype());
          convert(number.view(), {x.dtype(), {1}, static_cast<std::byte*>(x.view().data) + at});
        };
        put(0, HUGE_VAL);
        put(n / 2, std::numeric_limits<double>::quiet_NaN());
        put(n - 1, -HUGE_VAL);
      }
      CAPTURE(c.name);
      CAPTURE(kernel.name);
      const Tensor got = std::move(one.run(narrow)[0]);
      const Tensor want = std::move(run(wide, backend::cpu_reference())[0]);
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < want.shape().elements(); ++i) {
        // The low half of an infinity is not a number.
        if (std::isfinite(element_as_double(got.view(), i)) != std::isfinite(want.as<double>()[i]))
          ++wrong;
      }
      CHECK(wrong == 0);
    }
  }
}

}  // namespace halfstep::testing

// Graphs that unscale gradients in float16, and the effect of float16 arithmetic on small gradients
// there.

#include "precision/unscaling.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <string>

#include "core/half.h"
#include "rewritten.h"

namespace halfstep::precision {
namespace {

/// A step with a dynamic scale as TensorFlow writes it; `unscale` is the line of the op that takes
/// the scale off `gradient`.
std::string step(const std::string& unscale) {
  return R"(
    x        = Placeholder {dtype: float32}
    w        = VarHandleOp {dtype: float32}
    weight   = ReadVariableOp(w) {dtype: float32}
    handle   = Placeholder {dtype: resource}
    first    = ReadVariableOp(handle) {dtype: float32}
    second   = ReadVariableOp(handle) {dtype: float32}
    one      = Const {value: 1.0}
    scores   = MatMul(x, weight)
    loss     = L2Loss(scores)
    scaled   = Mul(loss, first)
    back     = Mul(scores, scaled)
    gradient = MatMul(x, back) {transpose_a: true}
    inverse  = RealDiv(one, second)
    recip    = Reciprocal(second)
  )" + unscale +
         "\n    update = AssignSubVariableOp(w, unscaled)\n";
}

RewriteOptions newer() {
  RewriteOptions options;
  options.rules = config::RewriteRules::tensorflow_2_20;
  return options;
}

/// "node" or "node/" for a division, of every op that unscales in float16.
std::string found(const std::string& text, const RewriteOptions& options) {
  const Rewritten r(text, options);
  std::string names;
  for (const Float16Unscaling& u : float16_unscalings(r.result().graph)) {
    names += (names.empty() ? "" : " ") + r.result().graph.node(u.node).name;
    if (u.divides) names += "/";
    if (u.scale) names += "=" + std::to_string(static_cast<int>(*u.scale));
  }
  return names;
}

/// An unscaled gradient as float16 arithmetic gives it.
float unscaled(float16 scaled, float scale, bool divides) {
  const auto g = static_cast<float>(scaled);
  const auto result =
      divides ? g / static_cast<float>(float16(scale)) : g * static_cast<float>(float16(1 / scale));
  return static_cast<float>(float16(result));
}

}  // namespace

TEST_CASE("unscaling: by TensorFlow's newer rules it is float16, by the older ones float32") {
  for (const std::string line : {"unscaled = Mul(gradient, inverse)",
                                 "unscaled = Mul(recip, gradient)",
                                 "unscaled = RealDiv(gradient, second)"}) {
    CAPTURE(line);
    const bool divides = line.find("RealDiv") != std::string::npos;
    CHECK(found(step(line), newer()) == (divides ? "unscaled/" : "unscaled"));
    CHECK(found(step(line), {}) == "");
    CHECK(found(step(line), in_mode(Mode::bf16)) == "");
    // Emulated, the op is float32 between two casts, and loses the same values as the float16 op.
    CHECK(found(step(line), in_mode(Mode::cpu)) == "");
    RewriteOptions emulated = newer();
    emulated.mode = Mode::cpu;
    CHECK(found(step(line), emulated) == (divides ? "unscaled/" : "unscaled"));
    emulated.emulate = false;
    CHECK(found(step(line), emulated) == (divides ? "unscaled/" : "unscaled"));
  }
}

TEST_CASE("unscaling: a constant scale is known by its number") {
  const std::string constants =
      "    up = Const {value: [1024]}\n    down = Const {value: [0.0009765625]}\n"
      "    raised = Mul(gradient, up)\n    again = MatMul(x, raised)\n";
  CHECK(found(step(constants + "    unscaled = Mul(again, down)"), newer()) == "unscaled=1024");
  CHECK(found(step(constants + "    unscaled = RealDiv(again, up)"), newer()) == "unscaled/=1024");
  // 1/1000 rounded to float32.
  const std::string thousand =
      "    up = Const {value: [1000.0]}\n    down = Const {value: [0.001000000047497451]}\n"
      "    raised = Mul(gradient, up)\n    again = MatMul(x, raised)\n";
  CHECK(found(step(thousand + "    unscaled = Mul(again, down)"), newer()) == "unscaled=999");
}

TEST_CASE("unscaling: other products and divisions in float16 are not taken for it") {
  // Half and double of a layer; a factor that nothing was multiplied with; a clip by the norm.
  for (const std::string& line : {std::string("h = Const {value: 0.5}\n d = Const {value: 2.0}\n"
                                              "g = Mul(gradient, d)\n unscaled = Mul(g, h)"),
                                  std::string("c = Const {value: 0.001}\n"
                                              "unscaled = Mul(gradient, c)"),
                                  std::string("limit = Const {value: 5.0}\n"
                                              "share = RealDiv(limit, second)\n"
                                              "unscaled = Mul(gradient, share)"),
                                  std::string("unscaled = Mul(weight, inverse)")}) {
    CAPTURE(line);
    CHECK(found(step(line), newer()) == "");
  }
}

TEST_CASE("unscaling: loops and scales behind a chain of identities end") {
  CHECK(found(step("i = Identity(second)\n j = Identity(i)\n k = Cast(j)\n"
                   "unscaled = RealDiv(gradient, k)"),
              newer()) == "unscaled/");
  CHECK(found("a = Identity(b)\nb = NextIteration(m)\nm = Merge(e, b)\ne = Enter(x)\nx = Const\n"
              "c = MatMul(m, a)\nd = Mul(c, a)\n",
              newer()) == "");
}

TEST_CASE("unscaling: the smallest gradient is that of float16 arithmetic") {
  for (const bool divides : {false, true}) {
    for (const double scale :
         {0.5, 1.0, 8.0, 1000.0, 1024.0, 32768.0, 65504.0, 65536.0, 0x1p24, 0x1p25}) {
      CAPTURE(divides);
      CAPTURE(scale);
      const SmallestGradient smallest = smallest_gradient(scale, divides);
      double seen = std::numeric_limits<double>::infinity();
      double worst = 0;
      for (int bits = 1; bits < 0x7c00; ++bits) {  // every positive finite float16
        const auto scaled = float16::of_bits(static_cast<std::uint16_t>(bits));
        const double truth = static_cast<float>(scaled) / scale;
        const double got = unscaled(scaled, static_cast<float>(scale), divides);
        if (got > 0 && !std::isinf(got)) seen = std::min(seen, got);
        if (truth >= smallest.full_digits && truth < 65504) {
          worst = std::max(worst, std::abs(got - truth) / truth);
        }
      }
      CHECK(seen == smallest.in_float16);
      // Half a unit of the result; the reciprocal of no power of two has its own rounding, of fewer
      // digits where it is subnormal.
      const bool exact = std::exp2(std::round(std::log2(scale))) == scale || divides;
      CHECK(worst <= (exact ? 0x1p-11 : 0x1p-9));
      CHECK(smallest.in_float32 == 0x1p-24 / scale);
    }
  }
}

TEST_CASE("unscaling: a gradient of 1.5e-8 at the scale 32768 is lost in float16 alone") {
  constexpr float k_gradient = 1.5e-8F;
  const auto scaled = float16(k_gradient * 32768);
  CHECK(unscaled(scaled, 32768, false) == 0);
  CHECK(static_cast<float>(scaled) / 32768 == doctest::Approx(k_gradient).epsilon(1e-3));
  const SmallestGradient smallest = smallest_gradient(32768, false);
  CHECK(k_gradient < smallest.in_float16 / 2);
  CHECK(k_gradient > smallest.in_float32);
}

TEST_CASE("unscaling: the warning names the op, its line and what survives") {
  const std::string text = step("unscaled = Mul(gradient, inverse)");
  const Rewritten r(text, newer());
  const auto warning = unscaling_warning(r.result().graph, std::nullopt, "a remedy");
  REQUIRE(warning);
  CHECK(warning->code == "W211");
  CHECK(warning->where.line == 16);
  CHECK(warning->message ==
        "'unscaled' (Mul) takes the loss scale off in float16: the smallest gradient it gives is "
        "6e-08, half of that and less becomes 0, and below 6.1e-05 digits are lost; in float32 it "
        "would give 1.8e-12 at the usual loss scale 32768; a remedy");
  const auto known = unscaling_warning(r.result().graph, 0x1p26, "");
  REQUIRE(known);
  CHECK(known->message.find("1/scale is 0 in float16, so every gradient becomes 0") !=
        std::string::npos);
  CHECK(known->message.ends_with("at the loss scale 6.71089e+07"));
  CHECK_FALSE(unscaling_warning(Rewritten(text).result().graph, std::nullopt, ""));
}

}  // namespace halfstep::precision

// The vector kernels against the reference, and against themselves: the same bits whatever the
// instruction set, the number of threads and the memory they write to.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <ostream>
#include <set>
#include <string_view>

#include "backend/cpu/kernels.h"
#include "backend/cpu/processor.h"
#include "backend/cpu/vector/loops.h"
#include "core/dispatch.h"
#include "core/parallel.h"
#include "graph/ops/ops.h"
#include "support/evaluate.h"
#include "support/kernels.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using backend::Capabilities;
using backend::Isa;
namespace vector = backend::cpu::vector;

std::vector<Isa> isas() {
  std::vector<Isa> all;
  for (Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    if (isa <= backend::cpu::detect_isa()) all.push_back(isa);
  }
  return all;
}

Capabilities capabilities(Isa isa = backend::cpu::detect_isa(), int threads = 2) {
  return {.isa = isa, .threads = threads};
}

/// Gives every NaN the same bits: its sign is whatever the processor makes of the operands' order.
void unify_nans(Tensor& tensor) {
  if (!is_floating(tensor.dtype())) return;
  dispatch_floating(tensor.dtype(), [&]<class T>(Type<T>) {
    for (T& x : tensor.span<T>()) {
      if (std::isnan(static_cast<Compute<T>>(x)))
        x = T(std::numeric_limits<Compute<T>>::quiet_NaN());
    }
  });
}

void check_same_bits(std::vector<Tensor> got, const std::vector<Tensor>& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    Tensor wanted = want[i].clone();
    unify_nans(got[i]);
    unify_nans(wanted);
    const Comparison same = compare_bits(got[i].view(), wanted.view());
    CHECK_MESSAGE(same, same.text);
  }
}

/// The distance of `got` from `want` in units of the last place of float32.
double ulps(double want, float got) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : HUGE_VAL;
  const auto nearest = static_cast<float>(want);
  if (got == nearest) return 0;
  int exponent = 0;
  std::frexp(want, &exponent);
  return std::abs(static_cast<double>(got) - want) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

}  // namespace

TEST_CASE("vector rows: each names an executable op, once, and takes part of the cases") {
  const std::vector<OpCase> cases = all_kernel_cases();
  std::set<std::string_view> ops;
  for (const backend::Kernel& kernel : backend::cpu::vector_kernels()) {
    CAPTURE(kernel.op);
    const graph::OpDef* op = graph::op_table().find(kernel.op);
    CHECK((op != nullptr && op->infer != nullptr));
    CHECK(ops.insert(kernel.op).second);
    CHECK(kernel.name.starts_with("vector/"));
    CHECK(check_against_reference(kernel, capabilities(), cases) > 0);
  }
}

TEST_CASE("vector: all instruction sets give the same bits") {
  const std::vector<OpCase> cases = all_kernel_cases();
  for (const backend::Kernel& kernel : backend::cpu::vector_kernels()) {
    for (const OpCase& c : cases) {
      if (c.op != kernel.op) continue;
      for (DType dtype : dtypes_of(c)) {
        BuiltCase first = build(c, dtype);
        const OneKernel plain(kernel, capabilities(Isa::baseline));
        if (!plain.takes(first)) continue;
        CAPTURE(c.name);
        CAPTURE(name(dtype));
        const std::vector<Tensor> want = plain.run(first);
        for (Isa isa : isas()) {
          CAPTURE(backend::name(isa));
          BuiltCase again = build(c, dtype);
          check_same_bits(OneKernel(kernel, capabilities(isa)).run(again), want);
        }
      }
    }
  }
}

TEST_CASE("vector: the number of threads changes no bit") {
  const int threads = thread_count();
  const std::vector<OpCase> cases = all_kernel_cases();
  for (const backend::Kernel& kernel : backend::cpu::vector_kernels()) {
    for (const OpCase& c : cases) {
      if (c.op != kernel.op) continue;
      BuiltCase one = build(c, dtypes_of(c).front());
      BuiltCase three = build(c, dtypes_of(c).front());
      if (!OneKernel(kernel, capabilities()).takes(one)) continue;
      CAPTURE(c.name);
      set_thread_count(1);
      const std::vector<Tensor> want =
          OneKernel(kernel, capabilities(backend::cpu::detect_isa(), 1)).run(one);
      set_thread_count(3);
      check_same_bits(OneKernel(kernel, capabilities(backend::cpu::detect_isa(), 3)).run(three),
                      want);
    }
  }
  set_thread_count(threads);
}

TEST_CASE("vector: a kernel that may write over an input gives the same there") {
  const std::vector<OpCase> cases = all_kernel_cases();
  for (const backend::Kernel& kernel : backend::cpu::vector_kernels()) {
    if (kernel.inplace == 0) continue;
    const OneKernel one(kernel, capabilities());
    for (const OpCase& c : cases) {
      if (c.op != kernel.op) continue;
      for (DType dtype : dtypes_of(c)) {
        BuiltCase built = build(c, dtype);
        if (!one.takes(built)) continue;
        CAPTURE(c.name);
        CAPTURE(name(dtype));
        check_in_place(kernel, capabilities(), built);
      }
    }
  }
}

TEST_CASE("vector: all 16-bit patterns widen exactly, and float32 rounds to the nearest") {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  std::vector<float> wide(patterns.size());
  std::vector<std::uint16_t> back(patterns.size());
  const auto n = static_cast<std::int64_t>(patterns.size());
  // Every pattern, its neighbours in float32, and the points half way to the next one.
  const auto neighbours = [](float x) {
    const auto u = std::bit_cast<std::uint32_t>(x);
    return std::array{x,
                      std::bit_cast<float>(u + 1),
                      std::bit_cast<float>(u - 1),
                      std::bit_cast<float>(u + 0x1000U),
                      std::bit_cast<float>(u + 0x1001U),
                      std::bit_cast<float>(u + 0x8000U),
                      std::bit_cast<float>(u + 0x8001U)};
  };
  for (Isa isa : isas()) {
    CAPTURE(backend::name(isa));
    const vector::Loops& l = vector::loops(isa);
    const auto check =
        [&]<class T>(Type<T>, vector::Widen widen, vector::Narrow narrow, vector::Round round) {
          std::int64_t wrong = 0;
          widen(wide.data(), patterns.data(), n);
          std::vector<float> candidates;
          for (std::size_t i = 0; i < patterns.size(); ++i) {
            const auto want = static_cast<float>(T::of_bits(patterns[i]));
            wrong += std::isnan(want) ? !std::isnan(wide[i])
                                      : std::bit_cast<std::uint32_t>(want) !=
                                            std::bit_cast<std::uint32_t>(wide[i]);
            for (float f : neighbours(wide[i])) candidates.push_back(f);
          }
          back.resize(candidates.size());
          narrow(back.data(), candidates.data(), static_cast<std::int64_t>(candidates.size()));
          for (std::size_t i = 0; i < candidates.size(); ++i)
            wrong += back[i] != T(candidates[i]).bits;
          // In one pass, also in place.
          std::vector<float> twice(candidates.size()), rounded(candidates.size());
          const auto count = static_cast<std::int64_t>(candidates.size());
          widen(twice.data(), back.data(), count);
          round(rounded.data(), candidates.data(), count);
          wrong += std::memcmp(rounded.data(), twice.data(), sizeof(float) * twice.size()) != 0;
          round(candidates.data(), candidates.data(), count);
          wrong += std::memcmp(candidates.data(), twice.data(), sizeof(float) * twice.size()) != 0;
          CHECK(wrong == 0);
        };
    check(Type<float16>{}, l.widen_float16, l.narrow_float16, l.round_float16);
    check(Type<bfloat16>{}, l.widen_bfloat16, l.narrow_bfloat16, l.round_bfloat16);
  }
}

TEST_CASE("vector: a softmax finds the largest logit of a row, and makes NaN and inf rows of NaN") {
  for (Isa isa : isas()) {
    CAPTURE(backend::name(isa));
    const auto softmax = vector::loops(isa).softmax;
    for (const std::int64_t columns : {1, 10, 31, 32, 33, 40, 64, 100}) {
      CAPTURE(columns);
      std::int64_t wrong = 0;
      for (std::int64_t at = 0; at < columns; ++at) {
        const auto row = static_cast<std::size_t>(columns);
        std::vector<float> y(row), x(row, -200.0F);
        x[static_cast<std::size_t>(at)] = 300;  // e^300 overflows, e^-500 is 0
        softmax(y.data(), x.data(), 1, columns);
        for (std::int64_t c = 0; c < columns; ++c) {
          wrong += y[static_cast<std::size_t>(c)] != (c == at ? 1.0F : 0.0F);
        }
        for (const float bad : {HUGE_VALF, std::numeric_limits<float>::quiet_NaN()}) {
          x[static_cast<std::size_t>(at)] = bad;
          softmax(y.data(), x.data(), 1, columns);
          wrong += std::count_if(y.begin(), y.end(), [](float v) { return !std::isnan(v); });
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("vector: subnormal numbers anywhere in a run round to the nearest bfloat16") {
  for (Isa isa : isas()) {
    CAPTURE(backend::name(isa));
    const vector::Narrow narrow = vector::loops(isa).narrow_bfloat16;
    // A lone one at each offset of a run with whole blocks, a vector and a rest.
    std::int64_t wrong = 0;
    for (std::size_t at = 0; at < 300; ++at) {
      std::vector<float> x(300, 1.5F);
      x[at] = at % 2 == 0 ? 0x1.55p-127F : -0x1p-133F;
      x[(at + 1) % x.size()] = at % 3 == 0 ? HUGE_VALF : at % 3 == 1 ? 0.0F : -0.0F;
      std::vector<std::uint16_t> y(x.size());
      narrow(y.data(), x.data(), static_cast<std::int64_t>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) wrong += y[i] != bfloat16(x[i]).bits;
    }
    CHECK(wrong == 0);
  }
}

namespace {

/// By bisection, with relative accuracy also near 0, where it is x sqrt(pi) / 2, and near 1.
double inverse_of_erf(double x) {
  const double a = std::abs(x), slope = 0.5 / std::numbers::inv_sqrtpi;
  if (a >= 1) return a == 1 ? x * HUGE_VAL : NAN;
  if (!(a > 1e-4)) return slope * x * (1 + std::numbers::pi / 12 * a * a);
  double low = 0, high = 6;
  for (int i = 0; i < 52; ++i) {
    const double y = (low + high) / 2;
    const bool below = a < 0.5 ? std::erf(y) < a : std::erfc(y) > 1 - a;
    (below ? low : high) = y;
  }
  return std::copysign((low + high) / 2, x);
}

}  // namespace

TEST_CASE("vector: elementary functions stay within their bounds of units in the last place") {
  struct Function {
    std::string_view op;
    double bound;
    double (*exact)(double);
  };
  const auto log1p_exp = [](double x) {
    return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
  };
  const Function functions[] = {
      {"Exp", 2, [](double x) { return std::exp(x); }},
      {"Expm1", 3, [](double x) { return std::expm1(x); }},
      {"Log", 2, [](double x) { return std::log(x); }},
      {"Log1p", 3, [](double x) { return std::log1p(x); }},
      {"Tanh", 5, [](double x) { return std::tanh(x); }},
      {"Sigmoid", 4, [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Softplus", 4, log1p_exp},
      {"Erf", 3, [](double x) { return std::erf(x); }},
      {"Erfinv", 5, inverse_of_erf},
  };
  // Floats of all magnitudes and signs, evenly over the bit patterns.
  constexpr std::uint32_t k_step = 3989;
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits <= 0xffffffffU; bits += k_step) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  std::vector<float> y(x.size());
  const vector::Loops& l = vector::loops(backend::cpu::detect_isa());
  for (const Function& f : functions) {
    CAPTURE(f.op);
    const auto* row = std::find_if(
        l.maps.begin(), l.maps.end(), [&](const vector::MapLoop& r) { return f.op == r.op; });
    REQUIRE(row != l.maps.end());
    const float* in[] = {x.data()};
    row->loop(y.data(), in, static_cast<std::int64_t>(x.size()), 0);
    double worst = 0;
    float at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(f.exact(static_cast<double>(x[i])), y[i]);
      if (error > worst) {
        worst = error;
        at = x[i];
      }
    }
    CAPTURE(at);
    CHECK(worst <= f.bound);
  }
}

TEST_CASE("vector: GELU is exact to 3e-7 of its input, and its far tail is no cancellation") {
  std::vector<float> x;
  for (int i = -14000; i <= 14000; ++i) x.push_back(static_cast<float>(i) * 0.001F);
  std::vector<float> y(x.size());
  const vector::Loops& l = vector::loops(backend::cpu::detect_isa());
  const auto* gelu = std::find_if(l.maps.begin(), l.maps.end(), [](const vector::MapLoop& r) {
    return std::string_view(r.op) == "Gelu";
  });
  REQUIRE(gelu != l.maps.end());
  const float* in[] = {x.data()};
  gelu->loop(y.data(), in, static_cast<std::int64_t>(x.size()), 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    const double want = at * 0.5 * std::erfc(-at * std::sqrt(0.5));
    CAPTURE(at);
    CHECK(std::abs(y[i] - want) <= 3e-7 * std::abs(at));
    // The exponent x^2 / 2 is rounded, which costs x^2 / 2 roundings of the result.
    const double relative = (10 + 0.5 * at * at) * epsilon(DType::float32);
    CHECK(std::abs(y[i] - want) <= relative * std::abs(want) + 0x1p-126);
  }
}

TEST_CASE("vector: a loop that rounds has the bits of the loop and of the rounding after it") {
  constexpr std::int64_t k_count = 53;  // whole registers and a rest
  std::vector<float> x[3];
  for (int j = 0; j < 3; ++j) {
    for (int i = 0; i < k_count; ++i)
      x[j].push_back(std::ldexp(std::sin(static_cast<float>(7 * i + j)), i % 40 - 26));
    x[j][5] = 0x1p-140F;
    x[j][20 + j] = HUGE_VALF;
    x[j][30 + j] = 65520;
  }
  const float* in[] = {x[0].data(), x[1].data(), x[2].data()};
  for (Isa isa : isas()) {
    CAPTURE(backend::name(isa));
    const vector::Loops& l = vector::loops(isa);
    for (const vector::MapLoop& row : l.maps) {
      CAPTURE(row.op);
      for (const int half : {0, 1}) {
        std::vector<float> y(k_count), want(k_count);
        row.rounded[half](y.data(), in, k_count, 0.5F);
        row.loop(want.data(), in, k_count, 0.5F);
        (half == 0 ? l.round_float16 : l.round_bfloat16)(want.data(), want.data(), k_count);
        std::int64_t wrong = 0;
        for (std::size_t i = 0; i < k_count; ++i) {
          wrong += std::isnan(want[i]) ? !std::isnan(y[i])
                                       : std::bit_cast<std::uint32_t>(want[i]) !=
                                             std::bit_cast<std::uint32_t>(y[i]);
        }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("vector: values are scaled as they are widened") {
  constexpr std::int64_t k_count = 53;
  std::vector<std::uint16_t> x;
  for (int i = 0; i < k_count; ++i) x.push_back(static_cast<std::uint16_t>(i * 1201));
  for (Isa isa : isas()) {
    CAPTURE(backend::name(isa));
    const vector::Loops& l = vector::loops(isa);
    for (const DType dtype : {DType::float16, DType::bfloat16}) {
      std::vector<float> wide(k_count), want(k_count), y(k_count);
      vector::widen_loop(l, dtype)(wide.data(), x.data(), k_count);
      l.scale_float32(want.data(), wide.data(), 0x1.3p-9F, k_count);
      vector::scale_loop(l, dtype)(y.data(), x.data(), 0x1.3p-9F, k_count);
      for (std::size_t i = 0; i < k_count; ++i) {
        const float product = wide[i] * 0x1.3p-9F;
        if (std::isnan(product)) {
          CHECK(std::isnan(y[i]));
        } else {
          CHECK(y[i] == product);
          CHECK(want[i] == product);
        }
      }
    }
  }
}

}  // namespace halfstep::testing

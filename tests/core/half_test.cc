#include "core/half.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string_view>

#include "core/philox.h"

namespace halfstep {
namespace {

constexpr float k_infinity = std::numeric_limits<float>::infinity();

/// The two formats as IEEE describes them, to compute with independently.
struct Format {
  std::string_view name;
  int mantissa_bits;
  int bias;
};
constexpr Format k_format_of_float16{"float16", 10, 15};
constexpr Format k_format_of_bfloat16{"bfloat16", 7, 127};

/// The value of a bit pattern by the definition; exact in double.
double value_of(const Format& format, std::uint32_t bits) {
  const std::uint32_t mantissa = bits & ((1U << format.mantissa_bits) - 1);
  const std::uint32_t exponent = (bits & 0x7fffU) >> format.mantissa_bits;
  const std::uint32_t special = 0x7fffU >> format.mantissa_bits;
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == special) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity()
                         : std::numeric_limits<double>::quiet_NaN();
  }
  const int scale = std::max<int>(static_cast<int>(exponent), 1) - format.bias;
  const double hidden = exponent == 0 ? 0 : 1;
  return sign * std::ldexp(hidden + std::ldexp(mantissa, -format.mantissa_bits), scale);
}

/// Counts bit patterns that `check` refuses and reports the first; 65536 doctest checks would be
/// slow.
template <class Check>
void for_all_patterns(const Format& format, Check check) {
  std::int64_t wrong = 0;
  std::uint32_t first = 0;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    if (check(bits)) continue;
    if (wrong++ == 0) first = bits;
  }
  CAPTURE(format.name);
  CAPTURE(first);
  CHECK(wrong == 0);
}

template <class Half>
void check_all_patterns(const Format& format) {
  const auto make = [](std::uint32_t bits) {
    return Half::of_bits(static_cast<std::uint16_t>(bits));
  };

  SUBCASE("to float is the value by the definition, sign of zero included") {
    for_all_patterns(format, [&](std::uint32_t bits) {
      const auto got = static_cast<double>(float(make(bits)));
      const double want = value_of(format, bits);
      if (std::isnan(want)) return std::isnan(got);
      return std::bit_cast<std::uint64_t>(got) == std::bit_cast<std::uint64_t>(want);
    });
  }
  SUBCASE("to float and back gives the same bits, NaN a quiet NaN with its sign and payload") {
    const std::uint32_t quiet = 1U << (format.mantissa_bits - 1);
    for_all_patterns(format, [&](std::uint32_t bits) {
      const std::uint32_t want = std::isnan(value_of(format, bits)) ? bits | quiet : bits;
      return Half(float(make(bits))).bits == want;
    });
  }
  SUBCASE("a number between two neighbours goes to the nearer, the middle to the even one") {
    const std::uint32_t infinity = 0x8000U - (1U << format.mantissa_bits);
    for_all_patterns(format, [&](std::uint32_t bits) {
      const std::uint32_t sign = bits & 0x8000U;
      const std::uint32_t magnitude = bits & 0x7fffU;
      if (magnitude >= infinity) return true;
      // Above the largest finite number the next one would be 2^(bias + 1).
      const double above = magnitude + 1 == infinity ? std::ldexp(1, format.bias + 1)
                                                     : value_of(format, magnitude + 1);
      const double middle = (value_of(format, magnitude) + above) / 2;
      const auto exact = static_cast<float>(middle);
      if (static_cast<double>(exact) != middle) return false;
      const float s = sign != 0 ? -1.0F : 1.0F;
      const std::uint32_t even = magnitude % 2 == 0 ? magnitude : magnitude + 1;
      return Half(s * exact).bits == (sign | even) &&
             Half(s * std::nextafter(exact, 0.0F)).bits == (sign | magnitude) &&
             Half(s * std::nextafter(exact, k_infinity)).bits == (sign | (magnitude + 1));
    });
  }
}

TEST_CASE("half: float16, all bit patterns") { check_all_patterns<float16>(k_format_of_float16); }
TEST_CASE("half: bfloat16, all bit patterns") {
  check_all_patterns<bfloat16>(k_format_of_bfloat16);
}

TEST_CASE("half: float16 at its ends") {
  CHECK(float16(65504.0F).bits == 0x7bff);
  CHECK(float16(std::nextafter(65520.0F, 0.0F)).bits == 0x7bff);
  CHECK(float16(65520.0F).bits == 0x7c00);
  CHECK(float16(-65520.0F).bits == 0xfc00);
  CHECK(float16(std::numeric_limits<float>::max()).bits == 0x7c00);
  CHECK(float16(k_infinity).bits == 0x7c00);
  CHECK(float16(0x1p-24F).bits == 0x0001);  // the smallest subnormal
  CHECK(float16(0x1p-25F).bits == 0x0000);  // half of it ties to zero
  CHECK(float16(std::nextafter(0x1p-25F, 1.0F)).bits == 0x0001);
  CHECK(float16(-0x1p-25F).bits == 0x8000);
  CHECK(float16(std::numeric_limits<float>::denorm_min()).bits == 0x0000);
  CHECK(float16(0x1.ff8p-15F).bits == 0x03ff);                    // the largest subnormal
  CHECK(float16(std::nextafter(0x1p-14F, 0.0F)).bits == 0x0400);  // rounds up to a normal number
  CHECK(float16(-0.0F).bits == 0x8000);
}

TEST_CASE("half: bfloat16 at its ends") {
  CHECK(bfloat16(0x1.fep127F).bits == 0x7f7f);
  CHECK(bfloat16(std::nextafter(0x1.ffp127F, 0.0F)).bits == 0x7f7f);
  CHECK(bfloat16(0x1.ffp127F).bits == 0x7f80);  // the middle ties to even: infinity
  CHECK(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(bfloat16(std::numeric_limits<float>::denorm_min()).bits == 0x0000);
  CHECK(bfloat16(0x1p-133F).bits == 0x0001);  // the smallest subnormal
  CHECK(bfloat16(0x1p-134F).bits == 0x0000);
  CHECK(bfloat16(-0.0F).bits == 0x8000);
}

TEST_CASE("half: a NaN of any payload stays a NaN, also one that lives in the low bits alone") {
  for (std::uint32_t payload : {0x1U, 0x1fffU, 0x2000U, 0xffffU, 0x10000U, 0x400000U, 0x7fffffU}) {
    for (std::uint32_t sign : {0U, 0x80000000U}) {
      CAPTURE(payload);
      const auto nan = std::bit_cast<float>(sign | 0x7f800000U | payload);
      CHECK(std::isnan(float(float16(nan))));
      CHECK(std::isnan(float(bfloat16(nan))));
      CHECK((float16(nan).bits >> 15) == (sign >> 31));
      CHECK((bfloat16(nan).bits >> 15) == (sign >> 31));
    }
  }
}

TEST_CASE("half: conversion works at compile time") {
  static_assert(float16(1.5F).bits == 0x3e00);
  static_assert(float(float16::of_bits(0xc000)) == -2.0F);
  static_assert(bfloat16(1.5F).bits == 0x3fc0);
  static_assert(float(bfloat16::of_bits(0xc000)) == -2.0F);
  static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2);
}

}  // namespace
}  // namespace halfstep

#pragma once
// The two 16-bit floating formats as storage types, with exact conversion. Arithmetic is done in
// float: load with float(x), store with T(f).

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/dtype.h"

namespace halfstep {

/// IEEE 754 binary16. Stored bits only; conversion from float rounds to nearest, ties to even,
/// keeps subnormals, overflows to infinity from 65520 on and keeps NaN a (quiet) NaN.
struct float16 {
  std::uint16_t bits = 0;

  float16() = default;
  constexpr explicit float16(float f) : bits(from_float(f)) {}
  constexpr explicit operator float() const { return to_float(bits); }
  static constexpr float16 of_bits(std::uint16_t b) {
    float16 h;
    h.bits = b;
    return h;
  }

  static constexpr std::uint16_t from_float(float f) {
    const std::uint32_t x = std::bit_cast<std::uint32_t>(f);
    const std::uint32_t sign = (x >> 16) & 0x8000U;
    const std::uint32_t mag = x & 0x7fffffffU;
    if (mag > 0x7f800000U)
      return static_cast<std::uint16_t>(sign | 0x7e00U | ((mag >> 13) & 0x3ffU));
    if (mag >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // >= 65520
    if (mag < 0x38800000U) {  // below 2^-14: subnormal or zero
      const std::uint32_t exponent = mag >> 23;
      if (exponent < 102) return static_cast<std::uint16_t>(sign);  // below 2^-25
      const std::uint32_t mantissa = (mag & 0x7fffffU) | 0x800000U;
      const std::uint32_t shift = 126 - exponent;
      const std::uint32_t kept = mantissa >> shift;
      const std::uint32_t rest = mantissa & ((1U << shift) - 1);
      const std::uint32_t half = 1U << (shift - 1);
      const std::uint32_t up = rest > half || (rest == half && (kept & 1U)) ? 1U : 0U;
      return static_cast<std::uint16_t>(sign | (kept + up));
    }
    const std::uint32_t rounded = mag + 0xfffU + ((mag >> 13) & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
  }

  static constexpr float to_float(std::uint16_t h) {
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000U) << 16;
    const std::uint32_t exponent = (h >> 10) & 0x1fU;
    const std::uint32_t mantissa = h & 0x3ffU;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
    if (exponent != 0)
      return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
};

/// bfloat16: the upper half of a float. Conversion rounds to nearest, ties to even.
struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  constexpr explicit bfloat16(float f) : bits(from_float(f)) {}
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
  static constexpr bfloat16 of_bits(std::uint16_t b) {
    bfloat16 h;
    h.bits = b;
    return h;
  }

  static constexpr std::uint16_t from_float(float f) {
    const std::uint32_t x = std::bit_cast<std::uint32_t>(f);
    if ((x & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>((x >> 16) | 0x40U);
    return static_cast<std::uint16_t>((x + 0x7fffU + ((x >> 16) & 1U)) >> 16);
  }
};

/// The dtype that a C++ type stores; see dispatch_floating.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::float32;
  if constexpr (std::is_same_v<T, double>) return DType::float64;
  if constexpr (std::is_same_v<T, float16>) return DType::float16;
  if constexpr (std::is_same_v<T, bfloat16>) return DType::bfloat16;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::int64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::uint8;
  if constexpr (std::is_same_v<T, bool>) return DType::boolean;
}

}  // namespace halfstep

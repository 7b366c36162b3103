// Packing operands: every arrangement against the layout's formula, and the splitting of float16.

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <ostream>

#include "fixture.h"
#include "packed.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

namespace packed = backend::cpu::packed;
using graph::ops::PackedFormat;
constexpr PackedFormat k_formats[] = {
    {DType::bfloat16, 1}, {DType::float16, 1}, {DType::float16, 2}};
constexpr DType k_sources[] = {DType::bfloat16, DType::float16, DType::float32};

/// All finite values of float16 as a row.
Tensor all_float16() {
  Tensor x(DType::float16, {1, 63488});
  std::int64_t i = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7c00U) == 0x7c00U) continue;
    x.as<float16>()[i++] = float16::of_bits(static_cast<std::uint16_t>(bits));
  }
  return x;
}

}  // namespace

TEST_CASE(
    "pack operand: each value, rounded once, stands where the layout says; the rest is zero") {
  constexpr std::int64_t k_sizes[][2] = {
      {1, 1}, {15, 17}, {16, 100}, {31, 33}, {33, 31}, {63, 65}, {100, 16}, {1, 1000}, {1000, 40}};
  for (const auto& [rows, columns] : k_sizes) {
    CAPTURE(rows);
    CAPTURE(columns);
    for (const DType source : k_sources) {
      const Tensor x = random_tensor(source, {rows, columns}, 11);
      for (const PackedFormat format : k_formats) {
        const DType dtype = format.dtype;
        for (const char operand : {'a', 'b'}) {
          for (const bool transpose : {false, true}) {
            CAPTURE(name(source));
            CAPTURE(name(dtype));
            CAPTURE(format.parts);
            CAPTURE(operand);
            CAPTURE(transpose);
            const bool along_depth = (operand == 'a') != transpose;
            const packed::Layout layout{
                along_depth ? rows : columns, along_depth ? columns : rows, format};
            const Tensor got =
                pack(packed::portable_block_kernels(), x, format, operand, transpose);
            std::int64_t misses = 0;
            for (std::int64_t row = 0; row < layout.panels() * 32; ++row) {
              for (std::int64_t k = 0; k < layout.k_blocks() * 32; ++k) {
                const bool inside = row < layout.rows && k < layout.depth;
                const std::int64_t at = along_depth ? row * columns + k : k * columns + row;
                const double want = inside ? rounded(dtype, element_as_double(x.view(), at)) : 0;
                misses += packed_value(got, layout, operand, row, k) == want ? 0 : 1;
              }
            }
            CHECK(misses == 0);
            for (const packed::BlockKernels* blocks : block_tables()) {
              const Tensor other = pack(*blocks, x, format, operand, transpose);
              const Comparison same = compare_bits(other.view(), got.view());
              CHECK_MESSAGE(same, same.text);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("pack operand: every finite float16 is the sum of two normal bfloat16 numbers") {
  const Tensor x = all_float16();
  constexpr PackedFormat k_parts{DType::float16, 2};
  const packed::Layout layout{1, x.elements(), k_parts};
  for (const packed::BlockKernels* blocks : block_tables()) {
    const Tensor got = pack(*blocks, x, k_parts, 'a', false);
    std::int64_t misses = 0;
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      misses += packed_value(got, layout, 'a', 0, i) == element_as_double(x.view(), i) ? 0 : 1;
    }
    CHECK(misses == 0);
    for (std::int64_t i = 0; i < got.elements() / 2; ++i) {
      const auto part = static_cast<float>(got.as<bfloat16>()[i]);
      misses += part == 0 || std::isnormal(part) ? 0 : 1;
    }
    CHECK(misses == 0);
  }
}

TEST_CASE("pack operand: zeros, denormal numbers, infinities and NaN") {
  constexpr double k_infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> special = {0.0,
                                       -0.0,
                                       0x1p-149,
                                       -0x1p-130,
                                       0x1.8p-133,
                                       0x1p-126,
                                       0x1p-24,
                                       0x1p-25,
                                       -0x1.8p-25,
                                       65504,
                                       65519,
                                       65520,
                                       -1e30,
                                       3.3e38,
                                       3.4e38,
                                       k_infinity,
                                       -k_infinity,
                                       std::nan("")};
  const auto n = static_cast<std::int64_t>(special.size());
  for (const DType source : k_sources) {
    for (const PackedFormat format : k_formats) {
      const DType dtype = format.dtype;
      CAPTURE(name(source));
      CAPTURE(name(dtype));
      const Tensor x = tensor(source, {1, n}, special);
      const Tensor got = pack(packed::portable_block_kernels(), x, format, 'a', false);
      const packed::Layout layout{1, n, format};
      for (std::int64_t i = 0; i < n; ++i) {
        CAPTURE(i);
        const double want = rounded(dtype, element_as_double(x.view(), i));
        const double value = packed_value(got, layout, 'a', 0, i);
        CHECK(std::isfinite(value) == std::isfinite(want));
        if (std::isfinite(want)) CHECK(value == want);
      }
      for (const packed::BlockKernels* blocks : block_tables()) {
        const Tensor other = pack(*blocks, x, format, 'a', false);
        const Comparison same = compare_bits(other.view(), got.view());
        CHECK_MESSAGE(same, same.text);
      }
    }
  }
}

}  // namespace halfstep::testing

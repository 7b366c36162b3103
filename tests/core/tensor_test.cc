#include "core/tensor.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <vector>

#include "core/dispatch.h"
#include "core/error.h"
#include "core/system.h"

namespace halfstep {
namespace {

constexpr std::array k_computed{DType::float32,
                                DType::float64,
                                DType::float16,
                                DType::bfloat16,
                                DType::int32,
                                DType::int64,
                                DType::uint8,
                                DType::boolean};

Tensor of(DType dtype, const std::vector<double>& values) {
  Tensor doubles(DType::float64, Shape{static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), doubles.as<double>());
  Tensor tensor(dtype, doubles.shape());
  convert(doubles.view(), tensor.view());
  return tensor;
}

TEST_CASE("tensor: new memory is aligned and zero, also for no elements at all") {
  for (DType dtype : k_computed) {
    CAPTURE(name(dtype));
    const Tensor tensor(dtype, Shape{3, 5});
    CHECK(reinterpret_cast<std::uintptr_t>(tensor.view().data) % AlignedBuffer::k_alignment == 0);
    CHECK(tensor.bytes() == 15 * size_bytes(dtype));
    for (std::int64_t i = 0; i < 15; ++i) CHECK(element_as_double(tensor.view(), i) == 0);
  }
  const Tensor empty(DType::float32, Shape{0, 4});
  CHECK(empty.elements() == 0);
  CHECK(empty.bytes() == 0);
  CHECK(empty.clone().shape() == Shape{0, 4});
}

TEST_CASE("tensor: a clone is equal and apart") {
  const Tensor tensor = of(DType::float32, {1, 2, 3});
  const Tensor copy = tensor.clone();
  tensor.as<float>()[1] = 9;
  CHECK(copy.span<float>()[1] == 2);
  CHECK(copy.shape() == tensor.shape());
}

TEST_CASE("tensor: moving keeps the address") {
  Tensor tensor = of(DType::float32, {1, 2});
  const void* address = tensor.view().data;
  const Tensor moved = std::move(tensor);
  CHECK(moved.view().data == address);
  CHECK(moved.as<float>()[1] == 2);
}

TEST_CASE(
    "tensor: memory that the system would promise and not have is refused before it is used") {
  const auto available = static_cast<std::int64_t>(available_memory_bytes());
  if (available < std::int64_t{1} << 30) return;
  CHECK_THROWS_AS(Tensor(DType::uint8, Shape{available + (available >> 3)}), UserError);
}

TEST_CASE("tensor: memory that cannot be had is the user's error") {
  constexpr std::size_t k_max = std::numeric_limits<std::size_t>::max();
  for (std::size_t bytes : {k_max / 4, k_max - 100, k_max}) {
    CAPTURE(bytes);
    try {
      const AlignedBuffer buffer(bytes);
      FAIL("allocated " << buffer.bytes());
    } catch (const UserError& e) {
      CHECK(e.kind() == ErrorKind::memory);
    }
  }
}

TEST_CASE("tensor: small whole numbers survive conversion between all dtypes") {
  const std::vector<double> values{0, 1, 2, 100};
  for (DType from : k_computed) {
    for (DType to : k_computed) {
      CAPTURE(name(from));
      CAPTURE(name(to));
      const Tensor source = of(from, values);
      const Tensor target(to, Shape{2, 2});
      convert(source.view(), target.view());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool truth = from == DType::boolean || to == DType::boolean;
        const double want = truth ? (values[i] != 0 ? 1 : 0) : values[i];
        CHECK(element_as_double(target.view(), static_cast<std::int64_t>(i)) == want);
      }
    }
  }
}

TEST_CASE("tensor: conversion to 16 bits rounds once, to nearest even") {
  struct Case {
    DType to;
    double x, want;
  };
  constexpr double k_inf = std::numeric_limits<double>::infinity();
  constexpr std::array cases{
      Case{DType::float16, 1 + 0x1p-11, 1},
      Case{DType::float16, 1 + 0x3p-11, 1 + 0x1p-9},
      // Through float to nearest these would become ties, and then go the wrong way.
      Case{DType::float16, 1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-10},
      Case{DType::float16, 1 + 0x3p-11 - 0x1p-40, 1 + 0x1p-10},
      Case{DType::float16, -1 - 0x1p-11 - 0x1p-40, -1 - 0x1p-10},
      Case{DType::bfloat16, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-7},
      Case{DType::bfloat16, 1 + 0x1p-8, 1},
      Case{DType::float16, 0x1p-25, 0},
      Case{DType::float16, 0x1p-25 + 0x1p-60, 0x1p-24},
      Case{DType::float16, 65520 - 0x1p-30, 65504},
      Case{DType::float16, 65520, k_inf},
      Case{DType::float16, 1e300, k_inf},
      Case{DType::bfloat16, -1e300, -k_inf},
      Case{DType::float16, 1e-300, 0},
  };
  for (const Case& c : cases) {
    CAPTURE(name(c.to));
    CAPTURE(c.x);
    CHECK(element_as_double(of(c.to, {c.x}).view(), 0) == c.want);
  }
  CHECK(std::isnan(
      element_as_double(of(DType::float16, {std::numeric_limits<double>::quiet_NaN()}).view(), 0)));
}

TEST_CASE("tensor: floats become whole numbers by cutting, and truth by not being zero") {
  const Tensor cut = of(DType::int32, {1.9, -1.9, 0.5});
  CHECK(cut.as<std::int32_t>()[0] == 1);
  CHECK(cut.as<std::int32_t>()[1] == -1);
  CHECK(cut.as<std::int32_t>()[2] == 0);
  const Tensor truth = of(DType::boolean, {0.5, 0, -3});
  CHECK(truth.as<bool>()[0]);
  CHECK_FALSE(truth.as<bool>()[1]);
  CHECK(truth.as<bool>()[2]);
}

TEST_CASE("tensor: int64 keeps numbers that a double cannot") {
  constexpr std::int64_t k_big = (std::int64_t{1} << 53) + 1;
  const Tensor from(DType::int64, Shape{1});
  from.as<std::int64_t>()[0] = k_big;
  const Tensor to(DType::int64, Shape{1});
  convert(from.view(), to.view());
  CHECK(to.as<std::int64_t>()[0] == k_big);
}

TEST_CASE("tensor: conversion needs as many elements on both sides") {
  const Tensor a(DType::float32, Shape{2, 3});
  const Tensor b(DType::float16, Shape{6});
  const Tensor c(DType::float16, Shape{5});
  CHECK_NOTHROW(convert(a.view(), b.view()));
  CHECK_THROWS_AS(convert(a.view(), c.view()), InternalError);
}

}  // namespace
}  // namespace halfstep

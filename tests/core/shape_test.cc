#include "core/shape.h"

#include <doctest/doctest.h>

#include <array>
#include <ostream>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace halfstep {
namespace {

TEST_CASE("shape: a scalar has rank 0 and one element") {
  const Shape scalar;
  CHECK(scalar.rank() == 0);
  CHECK(scalar.elements() == 1);
  CHECK(to_string(scalar) == "[]");
  CHECK(scalar == Shape{});
}

TEST_CASE("shape: extents, their products and their text") {
  const Shape shape{32, 28, 28, 1};
  CHECK(shape.rank() == 4);
  CHECK(shape[1] == 28);
  CHECK(shape.back() == 1);
  CHECK(shape.elements() == 32 * 28 * 28);
  CHECK(shape.elements(1, 3) == 28 * 28);
  CHECK(shape.elements(2, 2) == 1);
  CHECK(to_string(shape) == "[32, 28, 28, 1]");
  CHECK(Shape{3, 0, 5}.elements() == 0);
  CHECK(std::vector<std::int64_t>(shape.begin(), shape.end()) ==
        std::vector<std::int64_t>{32, 28, 28, 1});
}

TEST_CASE("shape: equality looks at rank and extents") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK_FALSE(Shape{2, 3} == Shape{3, 2});
  CHECK_FALSE(Shape{2} == Shape{2, 1});
  CHECK_FALSE(Shape{} == Shape{0});
}

TEST_CASE("shape: with replaces one extent of a copy") {
  const Shape shape{4, 5};
  CHECK(shape.with(0, 7) == Shape{7, 5});
  CHECK(shape == Shape{4, 5});
  CHECK_THROWS_AS(shape.with(2, 1), InternalError);
}

TEST_CASE("shape: too many extents or a negative one are our mistake") {
  CHECK_NOTHROW(Shape{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}), InternalError);
  CHECK_THROWS_AS((Shape{2, -1}), InternalError);
}

TEST_CASE("shape: a number of elements beyond any memory is an error, not a wrapped product") {
  constexpr std::int64_t k_large = std::int64_t{1} << 62, k_max = std::int64_t{1} << 58;
  for (const Shape& shape :
       {Shape{k_large, 28, 28, 1}, Shape{k_large, 4}, Shape{k_large, k_large}, Shape{k_max, 2}}) {
    CAPTURE(to_string(shape));
    try {
      static_cast<void>(shape.elements());
      FAIL_CHECK("counted");
    } catch (const UserError& error) {
      CHECK(error.kind() == ErrorKind::memory);
      CHECK(std::string(error.what()).find(to_string(shape)) != std::string::npos);
    }
    CHECK_THROWS_AS(static_cast<void>(shape.elements(0, 2)), UserError);
  }
  CHECK(Shape{k_max}.elements() == k_max);
  CHECK(Shape{k_large, 0, k_large}.elements() == 0);
  CHECK(Shape{k_large, 0, k_large}.elements(1, 3) == 0);
  CHECK(Shape{3, k_large, k_large}.elements(0, 1) == 3);
}

TEST_CASE("shape: broadcasting follows NumPy") {
  struct Case {
    Shape a, b;
    std::optional<Shape> want;
  };
  const std::array cases{
      Case{{}, {}, Shape{}},
      Case{{3}, {}, Shape{3}},
      Case{{2, 3}, {3}, Shape{2, 3}},
      Case{{2, 3}, {2, 1}, Shape{2, 3}},
      Case{{2, 1}, {1, 3}, Shape{2, 3}},
      Case{{8, 1, 6, 1}, {7, 1, 5}, Shape{8, 7, 6, 5}},
      Case{{0, 3}, {1, 3}, Shape{0, 3}},
      Case{{1}, {0}, Shape{0}},
      Case{{2, 3}, {2}, std::nullopt},
      Case{{2, 3}, {3, 3}, std::nullopt},
      Case{{0}, {2}, std::nullopt},
  };
  for (const Case& c : cases) {
    CAPTURE(to_string(c.a));
    CAPTURE(to_string(c.b));
    CHECK((broadcast(c.a, c.b) == c.want));
    CHECK((broadcast(c.b, c.a) == c.want));
  }
}

}  // namespace
}  // namespace halfstep

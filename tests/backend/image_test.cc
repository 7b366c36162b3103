#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <string_view>

#include "core/parallel.h"
#include "fixture.h"

namespace halfstep::testing {
namespace {

using graph::Attrs;
using graph::Value;

constexpr DType k_image_dtypes[] = {
    DType::float32, DType::float16, DType::bfloat16, DType::float64, DType::uint8};

/// 0, 1, 2, ...
Tensor counted(DType dtype, const Shape& shape) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < shape.elements(); ++i) all.push_back(static_cast<double>(i));
  return tensor(dtype, shape, all);
}

std::vector<double> augmented(std::string_view op,
                              const Tensor& images,
                              Attrs attrs,
                              double ordinal = 0) {
  Fixture fixture;
  const Value at = fixture.input(tensor(DType::int64, {}, {ordinal}));
  return values(
      fixture.evaluate(fixture.b().add(op, {fixture.input(images.clone()), at}, std::move(attrs))));
}

std::vector<double> sample(const std::vector<double>& all, const Shape& shape, std::int64_t n) {
  const auto size = shape.elements(1, 4);
  return {all.begin() + n * size, all.begin() + (n + 1) * size};
}

std::vector<double> mirrored(const std::vector<double>& x, const Shape& s, bool up, bool left) {
  std::vector<double> y;
  for (std::int64_t r = 0; r < s[1]; ++r) {
    for (std::int64_t c = 0; c < s[2]; ++c) {
      for (std::int64_t ch = 0; ch < s[3]; ++ch) {
        const std::int64_t row = up ? s[1] - 1 - r : r, column = left ? s[2] - 1 - c : c;
        y.push_back(x[static_cast<std::size_t>((row * s[2] + column) * s[3] + ch)]);
      }
    }
  }
  return y;
}

TEST_CASE("random flip: each sample is mirrored or not, about half of them each way") {
  struct Mode {
    std::string_view name;
    bool vertical, horizontal;
  };
  const Shape shape{600, 2, 3, 2};
  const Tensor images = random_tensor(DType::float32, shape, 1);
  for (const Mode& mode : {Mode{"horizontal", false, true},
                           Mode{"vertical", true, false},
                           Mode{"horizontal_and_vertical", true, true}}) {
    CAPTURE(mode.name);
    const std::vector<double> y =
        augmented("RandomFlip", images, {{"mode", std::string(mode.name)}});
    int counts[2][2] = {};
    for (std::int64_t n = 0; n < shape[0]; ++n) {
      int found = 0;
      for (const bool up : {false, true}) {
        for (const bool left : {false, true}) {
          if (sample(y, shape, n) != mirrored(sample(values(images), shape, n), shape, up, left)) {
            continue;
          }
          ++counts[up][left];
          ++found;
        }
      }
      CHECK(found == 1);
    }
    const double expected = 600.0 / (mode.vertical && mode.horizontal ? 4 : 2);
    for (const bool up : {false, true}) {
      for (const bool left : {false, true}) {
        const bool possible = (!up || mode.vertical) && (!left || mode.horizontal);
        // Five standard deviations of a count.
        CHECK(std::abs(counts[up][left] - (possible ? expected : 0)) <=
              (possible ? 5 * std::sqrt(expected) : 0));
      }
    }
  }
}

TEST_CASE("random flip: keeps every bit in every dtype, and another ordinal flips others") {
  const Shape shape{16, 2, 3, 1};
  std::vector<double> of_float;
  for (const DType dtype : k_image_dtypes) {
    CAPTURE(name(dtype));
    const std::vector<double> y = augmented("RandomFlip", counted(dtype, shape), {});
    if (of_float.empty()) of_float = y;
    CHECK(y == of_float);
  }
  CHECK(augmented("RandomFlip", counted(DType::float32, shape), {}, 1) != of_float);
  CHECK(augmented("RandomFlip", counted(DType::float32, {1, 1, 1, 1}), {}) ==
        std::vector<double>{0});
}

TEST_CASE("random flip: the gradient flips back") {
  Fixture fixture;
  const int node =
      fixture.b().add_node("RandomFlip",
                           {fixture.input(random_tensor(DType::float64, {6, 3, 2, 2}, 1)),
                            fixture.input(tensor(DType::int64, {}, {4}))});
  CHECK(gradient_errors(fixture, node, {0})[0] <= difference_tolerance());
}

Attrs translation(double down, double right, std::string fill, std::string interpolation) {
  return {{"height_low", down},
          {"height_high", down},
          {"width_low", right},
          {"width_high", right},
          {"fill_mode", std::move(fill)},
          {"fill_value", 9.0},
          {"interpolation", std::move(interpolation)}};
}

TEST_CASE("random translation: whole steps move rows, and the fill mode says what follows") {
  struct Row {
    std::string_view fill;
    double steps;
    std::vector<double> want;
  };
  // One row 1 2 3 4, moved to the right by `steps`.
  const Row rows[] = {
      {"constant", 0, {1, 2, 3, 4}},
      {"constant", 1, {9, 1, 2, 3}},
      {"constant", -2, {3, 4, 9, 9}},
      {"constant", 5, {9, 9, 9, 9}},
      {"nearest", 2, {1, 1, 1, 2}},
      {"nearest", -1, {2, 3, 4, 4}},
      {"nearest", -7, {4, 4, 4, 4}},
      {"reflect", 1, {1, 1, 2, 3}},
      {"reflect", 3, {3, 2, 1, 1}},
      {"reflect", -2, {3, 4, 4, 3}},
      {"reflect", 6, {3, 4, 4, 3}},
      {"reflect", 8, {1, 2, 3, 4}},
      {"wrap", 1, {4, 1, 2, 3}},
      {"wrap", -1, {2, 3, 4, 1}},
      {"wrap", 5, {4, 1, 2, 3}},
      {"wrap", -6, {3, 4, 1, 2}},
  };
  for (const DType dtype : k_image_dtypes) {
    CAPTURE(name(dtype));
    for (const Row& row : rows) {
      CAPTURE(row.fill);
      CAPTURE(row.steps);
      for (const std::string interpolation : {"nearest", "bilinear"}) {
        CAPTURE(interpolation);
        const std::string fill(row.fill);
        CHECK(augmented("RandomTranslation",
                        tensor(dtype, {1, 1, 4, 1}, {1, 2, 3, 4}),
                        translation(0, row.steps / 4, fill, interpolation)) == row.want);
        CHECK(augmented("RandomTranslation",
                        tensor(dtype, {1, 4, 1, 1}, {1, 2, 3, 4}),
                        translation(row.steps / 4, 0, fill, interpolation)) == row.want);
      }
    }
  }
}

TEST_CASE("random translation: parts of a step are interpolated or rounded") {
  const Tensor x = tensor(DType::float32, {1, 1, 4, 1}, {1, 2, 3, 4});
  const auto moved = [&](double steps, const std::string& fill, const std::string& how) {
    return augmented("RandomTranslation", x, translation(0, steps / 4, fill, how));
  };
  CHECK(moved(0.5, "nearest", "bilinear") == std::vector<double>{1, 1.5, 2.5, 3.5});
  CHECK(moved(0.5, "constant", "bilinear") == std::vector<double>{5, 1.5, 2.5, 3.5});
  CHECK(moved(0.5, "wrap", "bilinear") == std::vector<double>{2.5, 1.5, 2.5, 3.5});
  CHECK(moved(-0.25, "reflect", "bilinear") == std::vector<double>{1.25, 2.25, 3.25, 4});
  CHECK(moved(0.25, "constant", "nearest") == std::vector<double>{1, 2, 3, 4});
  CHECK(moved(0.75, "constant", "nearest") == std::vector<double>{9, 1, 2, 3});
  // uint8 rounds to nearest.
  CHECK(augmented("RandomTranslation",
                  tensor(DType::uint8, {1, 1, 2, 1}, {10, 13}),
                  translation(0, -0.375, "nearest", "bilinear")) == std::vector<double>{12, 13});
  // Both axes at once: a quarter of each of four neighbours.
  CHECK(augmented("RandomTranslation",
                  tensor(DType::float32, {1, 2, 2, 1}, {1, 2, 3, 8}),
                  translation(-0.25, -0.25, "nearest", "bilinear")) ==
        std::vector<double>{3.5, 5, 5.5, 8});
  CHECK(augmented("RandomTranslation",
                  tensor(DType::float32, {1, 1, 1, 2}, {6, 7}),
                  translation(0.3, -0.7, "reflect", "bilinear")) == std::vector<double>{6, 7});
}

TEST_CASE("random translation: what has no weight does not touch the result") {
  const std::vector<double> x{1, HUGE_VAL, 3, -HUGE_VAL};
  CHECK(augmented("RandomTranslation",
                  tensor(DType::float16, {1, 1, 4, 1}, x),
                  translation(0, 0, "wrap", "bilinear")) == x);
}

TEST_CASE("random translation: shifts fill their range, a draw of its own per sample") {
  const Shape shape{500, 1, 100, 1};
  std::vector<double> ramp;
  for (std::int64_t i = 0; i < shape.elements(); ++i) ramp.push_back(static_cast<double>(i % 100));
  Attrs attrs = translation(0, 0, "nearest", "bilinear");
  attrs.set("width_low", -0.2);
  attrs.set("width_high", 0.1);
  const std::vector<double> y =
      augmented("RandomTranslation", tensor(DType::float64, shape, ramp), attrs);
  double sum = 0, least = 1, most = -1;
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    const double shift = (50 - sample(y, shape, n)[50]) / 100;
    least = std::min(least, shift);
    most = std::max(most, shift);
    sum += shift;
  }
  CHECK(least >= -0.2 - 1e-5);
  CHECK(most <= 0.1 + 1e-5);
  CHECK(least < -0.19);
  CHECK(most > 0.09);
  CHECK(std::abs(sum / 500 + 0.05) < 5 * 0.3 / std::sqrt(12 * 500));
}

TEST_CASE("image augmentation: every number of threads gives the same bits") {
  const Tensor x = random_tensor(DType::float32, {33, 28, 28, 3}, 1);
  Attrs attrs = translation(0, 0, "reflect", "bilinear");
  attrs.set("width_high", 0.5);
  attrs.set("height_low", -0.5);
  const int before = thread_count();
  std::vector<double> flipped, moved;
  for (int threads : {1, 2, 4}) {
    set_thread_count(threads);
    const std::vector<double> flip = augmented("RandomFlip", x, {}, 3);
    const std::vector<double> move = augmented("RandomTranslation", x, attrs, 3);
    if (flipped.empty()) flipped = flip, moved = move;
    CHECK(flip == flipped);
    CHECK(move == moved);
  }
  set_thread_count(before);
}

}  // namespace
}  // namespace halfstep::testing

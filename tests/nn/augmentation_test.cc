// The layers that change images at random, by images that tell where each pixel comes from.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "nn/evaluate_model.h"

namespace halfstep::nn {
namespace {

using test::Fill;

struct Augmentation {
  std::string_view input;
  std::string layer;
  std::string_view policy = "float32";
  std::int64_t batch = 2;
  std::int64_t ordinal = 0;
  bool training = true;
};

std::vector<double> augmented(const Augmentation& r, const Fill& fill) {
  const test::ModelText text =
      test::good_model(fmt::format("{{input: {}, layers: [{{{}}}]}}", r.input, r.layer),
                       fmt::format("{{policy: {}}}", r.policy));
  const test::BuiltModel built = test::build_model(text.model, r.batch, r.training);
  return test::elements(test::evaluate_model(built, fill, r.ordinal).outputs.at(0));
}

}  // namespace

TEST_CASE("random_crop: each sample keeps neighbours, from a position of its own") {
  constexpr std::int64_t k_batch = 64;
  // Pixel (r, c) of each 5 x 7 image is 10 r + c.
  const auto fill = [](std::int64_t i) { return static_cast<float>(i / 7 % 5 * 10 + i % 7); };
  const std::string layer = "type: random_crop, height: 3, width: 4";
  for (const std::string_view policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
    CAPTURE(policy);
    const std::vector<double> y = augmented({"[5, 7, 1]", layer, policy, k_batch}, fill);
    REQUIRE(y.size() == k_batch * 12);
    std::set<double> corners;
    for (std::size_t n = 0; n < k_batch; ++n) {
      const double corner = y[n * 12];
      corners.insert(corner);
      for (std::size_t i = 0; i < 12; ++i) {
        CHECK(y[n * 12 + i] == corner + static_cast<double>(i / 4 * 10 + i % 4));
      }
    }
    // Three rows and four columns to begin at.
    CHECK(corners.size() == 12);
  }
  const auto run = [&](std::int64_t ordinal, bool training) {
    return augmented({"[5, 7, 1]", layer, "float32", k_batch, ordinal, training}, fill);
  };
  CHECK(run(1, true) != run(2, true));
  for (const std::size_t n : {0, 17}) CHECK(run(1, false)[n * 12] == 11);
}

TEST_CASE("cutout: a square is filled, the rest is as it was") {
  constexpr std::int64_t k_batch = 64, k_side = 6;
  const auto fill = [](std::int64_t i) { return static_cast<float>(i % 36 + 1); };
  const std::vector<double> y =
      augmented({"[6, 6, 1]", "type: cutout, size: 3, fill_value: -2", "float32", k_batch}, fill);
  std::set<std::size_t> sizes;
  for (std::size_t n = 0; n < k_batch; ++n) {
    std::size_t top = k_side, bottom = 0, left = k_side, right = 0, filled = 0;
    for (std::size_t i = 0; i < 36; ++i) {
      const double v = y[n * 36 + i];
      CHECK((v == -2 || v == static_cast<double>(i + 1)));
      if (v != -2) continue;
      ++filled;
      top = std::min(top, i / 6);
      bottom = std::max(bottom, i / 6);
      left = std::min(left, i % 6);
      right = std::max(right, i % 6);
    }
    REQUIRE(filled > 0);
    CHECK(filled == (bottom - top + 1) * (right - left + 1));
    CHECK(bottom - top < 3);
    CHECK(right - left < 3);
    sizes.insert(filled);
  }
  // Its middle is any pixel: whole squares, and parts of 2 rows or columns at the edges.
  CHECK(sizes == std::set<std::size_t>{4, 6, 9});
}

TEST_CASE("random_rotation: quarter and half turns, and the identity") {
  // Pixel (r, c) of a 4 x 4 image is 10 r + c.
  const auto fill = [](std::int64_t i) { return static_cast<float>(i / 4 % 4 * 10 + i % 4); };
  const auto turned = [&](std::string_view factor, std::string_view interpolation) {
    return augmented({"[4, 4, 1]",
                      fmt::format("type: random_rotation, factor: [{0}, {0}], interpolation: {1}",
                                  factor,
                                  interpolation),
                      "float32",
                      2},
                     fill);
  };
  for (const std::string_view interpolation : {"nearest", "bilinear"}) {
    CAPTURE(interpolation);
    const std::vector<double> same = turned("0", interpolation);
    const std::vector<double> quarter = turned("0.25", interpolation);
    const std::vector<double> half = turned("0.5", interpolation);
    const std::vector<double> back = turned("-0.25", interpolation);
    for (std::size_t i = 0; i < 16; ++i) {
      const auto r = static_cast<double>(i / 4), c = static_cast<double>(i % 4);
      CAPTURE(i);
      CHECK(same[16 + i] == doctest::Approx(10 * r + c).epsilon(1e-5));
      // Counterclockwise, the last column becomes the first row.
      CHECK(quarter[16 + i] == doctest::Approx(10 * c + (3 - r)).epsilon(1e-5));
      CHECK(half[16 + i] == doctest::Approx(10 * (3 - r) + (3 - c)).epsilon(1e-5));
      CHECK(back[16 + i] == doctest::Approx(10 * (3 - c) + r).epsilon(1e-5));
    }
  }
}

TEST_CASE("random_rotation: the corners of an eighth of a turn are filled") {
  const auto ones = [](std::int64_t) { return 1.0F; };
  for (const std::string_view mode : {"constant", "nearest", "reflect", "wrap"}) {
    CAPTURE(mode);
    const std::vector<double> y =
        augmented({"[8, 8, 1]",
                   fmt::format("type: random_rotation, factor: [0.125, 0.125], fill_value: 3, "
                               "fill_mode: {}",
                               mode),
                   "float32",
                   1},
                  ones);
    for (const std::size_t corner : {0, 7, 56, 63}) {
      CHECK(y[corner] == doctest::Approx(mode == "constant" ? 3 : 1));
    }
    CHECK(y[27] == doctest::Approx(1));
  }
}

}  // namespace halfstep::nn

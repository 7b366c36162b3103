#include "data/synthetic_digits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/hash.h"
#include "core/parallel.h"
#include "files.h"

namespace halfstep::data::testing {
namespace {

std::string hash_of(const Split& split) {
  Hasher hasher;
  hasher.add(std::as_bytes(split.images.span<std::uint8_t>()));
  hasher.add(std::as_bytes(split.labels.span<std::int32_t>()));
  return hasher.hex();
}

TEST_CASE("synthetic digits: every digit has a way of being written, in order") {
  int before = 0;
  std::array<int, 10> ways{};
  for (const Glyph& glyph : glyphs()) {
    REQUIRE(glyph.digit >= before);
    REQUIRE(glyph.digit < 10);
    before = glyph.digit;
    ++ways[static_cast<std::size_t>(glyph.digit)];
    CHECK(glyph.strokes.size() >= 1);
    for (const Stroke& stroke : glyph.strokes) {
      CHECK(stroke.points.size() >= 2);
      CHECK(stroke.points.size() <= 16);
    }
  }
  for (const int count : ways) CHECK(count >= 1);
}

TEST_CASE("synthetic digits: they are the same on every machine") {
  CHECK(hash_of(synthetic_digits({.seed = 1, .part = 0, .samples = 100})) ==
        "2e2917f8193a4e0e50d9bac74a1430aa");
  CHECK(hash_of(synthetic_digits({.seed = 1, .part = 1, .samples = 100})) ==
        "1c42361933cff67ae2c5330eda939ad7");
}

TEST_CASE("moving digits: each frame is the one before, moved the same way in all of them") {
  constexpr std::array<std::array<std::int64_t, 2>, 8> k_moves{
      {{0, 1}, {1, 1}, {1, 0}, {1, -1}, {0, -1}, {-1, -1}, {-1, 0}, {-1, 1}}};
  const Split clips = moving_digits({.seed = 4, .part = 0, .samples = 64});
  REQUIRE(clips.images.shape() == Shape{64, 8, 28, 28, 1});
  std::array<int, 8> seen{};
  for (std::int64_t i = 0; i < 64; ++i) {
    const auto label = static_cast<std::size_t>(clips.labels.as<std::int32_t>()[i]);
    REQUIRE(label < k_moves.size());
    ++seen[label];
    const std::uint8_t* clip = clips.images.as<std::uint8_t>() + i * 8 * 28 * 28;
    // The pixels that both frames show are the same at one of the two speeds.
    const auto moved = [&](std::int64_t frame, std::int64_t speed) {
      for (std::int64_t r = 4; r < 24; ++r) {
        for (std::int64_t c = 4; c < 24; ++c) {
          const std::int64_t before =
              (r - speed * k_moves[label][0]) * 28 + c - speed * k_moves[label][1];
          if (clip[(frame + 1) * 784 + r * 28 + c] != clip[frame * 784 + before]) return false;
        }
      }
      return true;
    };
    for (const std::int64_t frame : {2, 3, 4}) {
      CAPTURE(i);
      CAPTURE(frame);
      CHECK((moved(frame, 1) || moved(frame, 2)));
    }
  }
  for (const int count : seen) CHECK(count > 0);
  const Split few = moving_digits({.seed = 4, .part = 0, .samples = 5});
  CHECK(std::memcmp(few.images.as<std::byte>(), clips.images.as<std::byte>(), few.images.bytes()) ==
        0);
  CHECK(hash_of(moving_digits({.seed = 4, .part = 1, .samples = 64})) != hash_of(clips));
}

TEST_CASE("synthetic digits: threads and the number of samples do not matter") {
  const int threads = thread_count();
  const Split all = synthetic_digits({.seed = 3, .part = 0, .samples = 1000});
  for (const int n : {1, 3}) {
    set_thread_count(n);
    CHECK(hash_of(synthetic_digits({.seed = 3, .part = 0, .samples = 1000})) == hash_of(all));
  }
  set_thread_count(threads);
  const Split few = synthetic_digits({.seed = 3, .part = 0, .samples = 37});
  CHECK(std::memcmp(few.images.as<std::byte>(), all.images.as<std::byte>(), few.images.bytes()) ==
        0);
  CHECK(std::memcmp(few.labels.as<std::byte>(), all.labels.as<std::byte>(), few.labels.bytes()) ==
        0);
}

TEST_CASE("synthetic digits: seeds and parts have nothing in common, and classes are even") {
  const Split a = synthetic_digits({.seed = 3, .part = 0, .samples = 2000});
  const Split b = synthetic_digits({.seed = 4, .part = 0, .samples = 2000});
  const Split c = synthetic_digits({.seed = 3, .part = 1, .samples = 2000});
  CHECK(hash_of(a) != hash_of(b));
  CHECK(hash_of(a) != hash_of(c));
  for (const Split* split : {&a, &b, &c}) {
    std::array<int, 10> counts{};
    for (const std::int32_t label : split->labels.span<std::int32_t>()) {
      REQUIRE(label >= 0);
      REQUIRE(label < 10);
      ++counts[static_cast<std::size_t>(label)];
    }
    // 200 of each, with deviation sqrt(2000 * 0.09) = 13.4.
    for (const int count : counts) CHECK(std::abs(count - 200) < 5 * 13.4);
  }
}

TEST_CASE("synthetic digits: there is ink in each picture, and most of it is dark") {
  const Split split = synthetic_digits({.seed = 8, .part = 0, .samples = 2000});
  for (std::int64_t i = 0; i < 2000; ++i) {
    const std::uint8_t* picture = split.images.as<std::uint8_t>() + i * 784;
    int bright = 0;
    for (int p = 0; p < 784; ++p) bright += picture[p] > 110 ? 1 : 0;
    CAPTURE(i);
    CHECK(bright >= 8);
    CHECK(bright < 400);
  }
}

/// Softmax regression by plain gradient descent on batches of 50; returns the test accuracy.
double linear_accuracy(const Split& train, const Split& test, int epochs) {
  constexpr std::size_t k_pixels = 784;
  constexpr std::size_t k_classes = 10;
  std::vector<float> weights((k_pixels + 1) * k_classes);
  std::vector<float> step(weights.size());
  const auto logits = [&](const std::uint8_t* picture, std::array<float, k_classes>& z) {
    for (std::size_t k = 0; k < k_classes; ++k) z[k] = weights[k_pixels * k_classes + k];
    for (std::size_t p = 0; p < k_pixels; ++p) {
      if (picture[p] == 0) continue;
      const float x = static_cast<float>(picture[p]) / 255.0F;
      for (std::size_t k = 0; k < k_classes; ++k) z[k] += x * weights[p * k_classes + k];
    }
  };
  std::array<float, k_classes> z{};
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const float rate = 0.3F / static_cast<float>(1 + epoch);
    for (std::int64_t first = 0; first + 50 <= train.samples(); first += 50) {
      std::fill(step.begin(), step.end(), 0.0F);
      for (std::int64_t i = first; i < first + 50; ++i) {
        const std::uint8_t* picture = train.images.as<std::uint8_t>() + i * 784;
        logits(picture, z);
        const float top = *std::max_element(z.begin(), z.end());
        float sum = 0;
        for (float& value : z) sum += value = std::exp(value - top);
        for (float& value : z) value /= sum;
        z[static_cast<std::size_t>(train.labels.as<std::int32_t>()[i])] -= 1;
        for (std::size_t p = 0; p < k_pixels; ++p) {
          if (picture[p] == 0) continue;
          const float x = static_cast<float>(picture[p]) / 255.0F;
          for (std::size_t k = 0; k < k_classes; ++k) step[p * k_classes + k] += x * z[k];
        }
        for (std::size_t k = 0; k < k_classes; ++k) step[k_pixels * k_classes + k] += z[k];
      }
      for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= rate / 50 * step[i];
    }
  }
  std::int64_t right = 0;
  for (std::int64_t i = 0; i < test.samples(); ++i) {
    logits(test.images.as<std::uint8_t>() + i * 784, z);
    const auto best = std::max_element(z.begin(), z.end()) - z.begin();
    right += best == test.labels.as<std::int32_t>()[i] ? 1 : 0;
  }
  return static_cast<double>(right) / static_cast<double>(test.samples());
}

TEST_CASE("synthetic digits: a linear model learns something and fails to learn them" *
          doctest::test_suite("slow")) {
  const Split train = synthetic_digits({.seed = 1, .part = 0, .samples = 20'000});
  const Split test = synthetic_digits({.seed = 1, .part = 1, .samples = 5'000});
  const double accuracy = linear_accuracy(train, test, 6);
  MESSAGE("linear accuracy " << accuracy);
  CHECK(accuracy > 0.5);
  CHECK(accuracy < 0.9);
}

}  // namespace
}  // namespace halfstep::data::testing

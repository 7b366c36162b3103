#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string_view>

#include "core/parallel.h"
#include "fixture.h"

namespace halfstep::testing {
namespace {

using graph::Attrs;
using graph::Value;
using Ints = std::vector<std::int64_t>;

struct PoolCase {
  std::string_view name;
  Shape x;
  std::int64_t size_h, size_w, stride_h, stride_w;
  std::string_view padding = "VALID";
};

const PoolCase k_pool_cases[] = {
    {"one cell", {1, 1, 1, 1}, 1, 1, 1, 1},
    {"halves", {2, 4, 6, 3}, 2, 2, 2, 2},
    {"halves of odd sides", {1, 5, 7, 2}, 2, 2, 2, 2},
    {"halves of odd sides, same", {1, 5, 7, 2}, 2, 2, 2, 2, "SAME"},
    {"overlapping", {2, 6, 5, 2}, 3, 3, 2, 1},
    {"overlapping, same", {1, 6, 5, 2}, 3, 3, 2, 1, "SAME"},
    {"stride past the window", {1, 8, 7, 2}, 2, 1, 5, 3},
    {"stride past the window, same", {1, 8, 7, 2}, 1, 2, 3, 4, "SAME"},
    {"window larger than the input, same", {1, 2, 3, 2}, 5, 4, 1, 1, "SAME"},
    {"all of it", {2, 5, 4, 3}, 5, 4, 1, 1},
    {"vectors of channels of each length", {1, 4, 4, 61}, 2, 2, 2, 2},
    {"eight channels", {2, 4, 6, 8}, 1, 2, 1, 2},
};

Attrs pool_attrs(const PoolCase& c) {
  return {{"ksize", Ints{1, c.size_h, c.size_w, 1}},
          {"strides", Ints{1, c.stride_h, c.stride_w, 1}},
          {"padding", std::string(c.padding)}};
}

/// The offsets of every window's cells in row-major order, one list per element of the output,
/// found by asking each cell of the input row by row.
std::vector<std::vector<std::size_t>> windows(const PoolCase& c, const Shape& y) {
  const auto before =
      [&](std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t stride) {
        const std::int64_t total = (out - 1) * stride + size - in;
        return c.padding == "SAME" && total > 0 ? total / 2 : 0;
      };
  const std::int64_t top = before(c.x[1], y[1], c.size_h, c.stride_h);
  const std::int64_t left = before(c.x[2], y[2], c.size_w, c.stride_w);
  std::vector<std::vector<std::size_t>> cells(static_cast<std::size_t>(y.elements()));
  for (std::int64_t at = 0; at < c.x.elements(); ++at) {
    const std::int64_t channel = at % c.x[3], column = at / c.x[3] % c.x[2];
    const std::int64_t row = at / c.x[3] / c.x[2] % c.x[1], n = at / c.x.elements(1, 4);
    for (std::int64_t i = 0; i < y[1]; ++i) {
      for (std::int64_t j = 0; j < y[2]; ++j) {
        const std::int64_t down = row + top - i * c.stride_h,
                           right = column + left - j * c.stride_w;
        if (down < 0 || down >= c.size_h || right < 0 || right >= c.size_w) continue;
        cells[static_cast<std::size_t>(((n * y[1] + i) * y[2] + j) * y[3] + channel)].push_back(
            static_cast<std::size_t>(at));
      }
    }
  }
  return cells;
}

void check_near(const Tensor& got, const std::vector<double>& want, double magnitude) {
  const std::vector<double> all = values(got);
  REQUIRE(all.size() == want.size());
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double allowed =
        rounding(got.dtype(), want[i]) + 64 * epsilon(DType::float64) * magnitude;
    if (!(std::abs(all[i] - want[i]) <= allowed)) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("max pool: output and gradient belong to the first largest cell") {
  for (const DType dtype : k_floating) {
    CAPTURE(name(dtype));
    for (const PoolCase& c : k_pool_cases) {
      CAPTURE(c.name);
      Fixture fixture;
      // Few distinct values, so that ties abound.
      Tensor x = random_tensor(dtype, c.x, 1, -2, 2);
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        set(x, i, std::round(element_as_double(x.view(), i)));
      }
      const Value vx = fixture.input(x.clone());
      const Value y = fixture.b().add("MaxPool", {vx}, pool_attrs(c));
      const Tensor dy = random_tensor(dtype, fixture.b().shape(y), 2);
      const Value dx =
          fixture.b().add("MaxPoolGrad", {vx, y, fixture.input(dy.clone())}, pool_attrs(c));
      fixture.run();

      const auto cells = windows(c, fixture.b().shape(y));
      const std::vector<double> xs = values(x), dys = values(dy);
      std::vector<double> want_y, want_dx(xs.size());
      for (std::size_t i = 0; i < cells.size(); ++i) {
        REQUIRE(!cells[i].empty());
        const std::size_t best =
            *std::max_element(cells[i].begin(), cells[i].end(), [&](std::size_t a, std::size_t b) {
              return xs[a] < xs[b];
            });
        want_y.push_back(xs[best]);
        want_dx[best] += dys[i];
      }
      CHECK(values(fixture.result(y)) == want_y);
      check_near(fixture.result(dx), want_dx, 30);
    }
  }
}

TEST_CASE("average pool: the mean of the cells that exist, and its gradient") {
  for (const DType dtype : k_floating) {
    CAPTURE(name(dtype));
    for (const PoolCase& c : k_pool_cases) {
      CAPTURE(c.name);
      Fixture fixture;
      const Tensor x = random_tensor(dtype, c.x, 1);
      const Value y = fixture.b().add("AvgPool", {fixture.input(x.clone())}, pool_attrs(c));
      const Tensor dy = random_tensor(dtype, fixture.b().shape(y), 2);
      const Value dx =
          fixture.b().add("AvgPoolGrad",
                          {fixture.b().ints({c.x.begin(), c.x.end()}), fixture.input(dy.clone())},
                          pool_attrs(c));
      fixture.run();

      const auto cells = windows(c, fixture.b().shape(y));
      const std::vector<double> xs = values(x), dys = values(dy);
      std::vector<double> want_y, want_dx(xs.size());
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const double share = 1 / static_cast<double>(cells[i].size());
        double mean = 0;
        for (std::size_t at : cells[i]) {
          mean += xs[at] * share;
          want_dx[at] += dys[i] * share;
        }
        want_y.push_back(mean);
      }
      check_near(fixture.result(y), want_y, 30);
      check_near(fixture.result(dx), want_dx, 30);
    }
  }
}

TEST_CASE("pooling: gradient rules agree with finite differences") {
  for (const PoolCase& c : k_pool_cases) {
    CAPTURE(c.name);
    for (const std::string op : {"MaxPool", "AvgPool"}) {
      CAPTURE(op);
      Fixture fixture;
      const int node = fixture.b().add_node(
          op, {fixture.input(random_tensor(DType::float64, c.x, 1))}, pool_attrs(c));
      CHECK(gradient_errors(fixture, node, {0})[0] <= difference_tolerance());
    }
    Fixture fixture;
    const Shape y = fixture.b().shape(fixture.b().add(
        "AvgPool", {fixture.input(random_tensor(DType::float64, c.x, 1))}, pool_attrs(c)));
    const int node = fixture.b().add_node("AvgPoolGrad",
                                          {fixture.b().ints({c.x.begin(), c.x.end()}),
                                           fixture.input(random_tensor(DType::float64, y, 2))},
                                          pool_attrs(c));
    CHECK(gradient_errors(fixture, node, {1})[0] <= difference_tolerance());
  }
}

TEST_CASE("max pool: a NaN is above every number, and the first one takes the gradient") {
  struct Row {
    std::string_view name;
    std::vector<double> x;
    std::size_t winner;
  };
  const Row rows[] = {
      {"NaN first", {k_nan, 1, 2, 3}, 0},
      {"NaN in the middle", {1, k_nan, 2, HUGE_VAL}, 1},
      {"NaN last", {3, 2, 1, k_nan}, 3},
      {"two NaNs", {1, k_nan, k_nan, 5}, 1},
      {"infinity", {1, HUGE_VAL, 2, HUGE_VAL}, 1},
      {"nothing but -infinity", {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL, -HUGE_VAL}, 0},
      {"both zeros", {-0.0, 0.0, -1, 0.0}, 0},
  };
  for (const DType dtype : k_floating) {
    CAPTURE(name(dtype));
    for (const Row& row : rows) {
      CAPTURE(row.name);
      const PoolCase c{"", {1, 2, 2, 1}, 2, 2, 1, 1};
      Fixture fixture;
      const Value x = fixture.input(tensor(dtype, c.x, row.x));
      const Value y = fixture.b().add("MaxPool", {x}, pool_attrs(c));
      const Value dx = fixture.b().add(
          "MaxPoolGrad", {x, y, fixture.input(tensor(dtype, {1, 1, 1, 1}, {2}))}, pool_attrs(c));
      fixture.run();
      const double got = values(fixture.result(y))[0], want = row.x[row.winner];
      CHECK((std::isnan(want) ? std::isnan(got) : got == want));
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(values(fixture.result(dx))[i] == (i == row.winner ? 2 : 0));
      }
    }
  }
}

TEST_CASE("average pool: infinities and NaN reach their windows alone") {
  Fixture fixture;
  const PoolCase c{"", {1, 1, 6, 1}, 1, 2, 1, 2};
  const Value x = fixture.input(tensor(DType::float16, c.x, {HUGE_VAL, 1, k_nan, 1, 60000, 60000}));
  const std::vector<double> y =
      values(fixture.evaluate(fixture.b().add("AvgPool", {x}, pool_attrs(c))));
  CHECK(y[0] == HUGE_VAL);
  CHECK(std::isnan(y[1]));
  CHECK(y[2] == 60000);  // the sum alone would overflow float16
}

TEST_CASE("max pool: whole numbers") {
  for (const DType dtype : {DType::int32, DType::int64, DType::uint8}) {
    CAPTURE(name(dtype));
    Fixture fixture;
    const PoolCase c{"", {1, 2, 3, 1}, 2, 2, 1, 1};
    const Value x = fixture.input(tensor(dtype, c.x, {1, 200, 3, 4, 5, 200}));
    CHECK(values(fixture.evaluate(fixture.b().add("MaxPool", {x}, pool_attrs(c)))) ==
          std::vector<double>{200, 200});
  }
}

TEST_CASE("pooling: every number of threads gives the same bits") {
  const PoolCase c{"", {7, 33, 31, 5}, 3, 3, 2, 2, "SAME"};
  const int before = thread_count();
  std::vector<std::vector<double>> first;
  for (int threads : {1, 2, 5}) {
    set_thread_count(threads);
    Fixture fixture;
    const Value x = fixture.input(random_tensor(DType::float32, c.x, 1));
    const Value y = fixture.b().add("MaxPool", {x}, pool_attrs(c));
    const Value mean = fixture.b().add("AvgPool", {x}, pool_attrs(c));
    const Value dx = fixture.b().add("MaxPoolGrad", {x, y, mean}, pool_attrs(c));
    const Value sizes = fixture.b().ints({c.x.begin(), c.x.end()});
    const Value dmean = fixture.b().add("AvgPoolGrad", {sizes, mean}, pool_attrs(c));
    fixture.run();
    std::vector<std::vector<double>> got;
    for (const Value& value : {y, mean, dx, dmean}) got.push_back(values(fixture.result(value)));
    if (first.empty()) first = got;
    CHECK(got == first);
  }
  set_thread_count(before);
}

}  // namespace
}  // namespace halfstep::testing

// cuDNN's arguments for convolutions: the formula over extents, strides and paddings equals the
// definition over [N,H,W,C].

#include "backend/cuda/vendor/conv_arguments.h"

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>
#include <vector>

#include "backend/cuda/vendor/emulated/libraries.h"
#include "core/error.h"
#include "support/cuda/conv_case.h"

namespace halfstep::backend::cuda {
namespace {

using halfstep::testing::ConvCase;
using halfstep::testing::pick;
using halfstep::testing::poisoned_tensor;
using halfstep::testing::random_geometry;

TEST_CASE("conv arguments: the three convolutions of random geometries") {
  RandomStream random(11, 0);
  for (int round = 0; round < 90; ++round) {
    ConvKey key{.kind = static_cast<ConvKind>(round % 3), .geometry = random_geometry(random)};
    key.dtype = pick(random, {DType::float16, DType::bfloat16, DType::float32});
    key.bias = key.kind == ConvKind::forward && random.below(2) == 1;
    key.relu = key.bias && random.below(2) == 1;
    CAPTURE(to_string(key));
    ConvCase c(key, random);
    const std::vector<double> wanted = c.wanted();
    c.output() = poisoned_tensor(key.dtype, c.output().elements());
    emulated::run_conv(conv_arguments(key),
                       c.x.view().data,
                       c.filter.view().data,
                       c.y.view().data,
                       key.bias ? c.bias.view().data : nullptr);
    for (std::int64_t i = 0; i < c.output().elements(); ++i) {
      const double want = wanted[static_cast<std::size_t>(i)];
      const double got = element_as_double(c.output().view(), i);
      REQUIRE(std::abs(got - want) <= c.allowed(want));
    }
  }
}

TEST_CASE("conv arguments: what the library is told") {
  ConvKey key;
  key.geometry.window = {graph::ops::window_axis(28, 3, 2, 1, "SAME"),
                         graph::ops::window_axis(20, 5, 1, 1, "VALID")};
  key.geometry.batch = 4;
  key.geometry.inputs = key.geometry.group_inputs = 3;
  key.geometry.outputs = key.geometry.group_outputs = 8;
  const ConvArguments c = conv_arguments(key);
  CHECK(c.x == ConvTensor{{4, 3, 28, 20}, {28 * 20 * 3, 1, 20 * 3, 3}});
  CHECK(c.filter == ConvTensor{{8, 3, 3, 5}, {3 * 5 * 3, 1, 5 * 3, 3}});
  CHECK(c.y == ConvTensor{{4, 8, 14, 16}, {14 * 16 * 8, 1, 16 * 8, 8}});
  CHECK(c.pre_padding == ConvPair{0, 0});
  CHECK(c.post_padding == ConvPair{1, 0});
  CHECK(c.stride == ConvPair{2, 1});
  CHECK(c.strict_float32);
  key.float32 = Float32Math::tf32;
  CHECK_FALSE(conv_arguments(key).strict_float32);
}

TEST_CASE("conv arguments: what no library takes is a mistake of the caller") {
  RandomStream random(12, 0);
  ConvKey key{.geometry = random_geometry(random)};
  CHECK_NOTHROW(conv_arguments(key));
  ConvKey wrong = key;
  wrong.dtype = DType::float64;
  CHECK_THROWS_AS(conv_arguments(wrong), InternalError);
  wrong = key;
  wrong.relu = true;
  CHECK_THROWS_AS(conv_arguments(wrong), InternalError);
  wrong = key;
  wrong.kind = ConvKind::filter_gradient;
  wrong.bias = true;
  CHECK_THROWS_AS(conv_arguments(wrong), InternalError);
  wrong = key;
  wrong.geometry.window.height.output += 1;
  CHECK_THROWS_AS(conv_arguments(wrong), InternalError);
}

}  // namespace
}  // namespace halfstep::backend::cuda

// Convolutions on the device against the definition in double.

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <ostream>

#include "cuda_device/device.h"
#include "support/cuda/conv_case.h"

namespace halfstep::testing {
namespace {

using backend::cuda::ConvKey;
using backend::cuda::ConvKind;
using backend::cuda::Convolution;
using backend::cuda::Float32Math;

DType random_dtype(RandomStream& random) {
  const std::vector<DType> all = dtypes();
  return all[random.below(all.size())];
}

/// Runs the convolution of `c` and reads its output. False when the library has nothing for it.
bool run(ConvCase& c) {
  const std::unique_ptr<Convolution> convolution = device().convolution(c.key);
  if (!convolution) return false;
  CAPTURE(convolution->description());
  c.output() = poisoned_tensor(c.key.dtype, c.output().elements());
  const OnDevice x(c.x), filter(c.filter), y(c.y), bias(c.bias);
  const OnDevice workspace(convolution->workspace_bytes());
  convolution->run(
      {.x = x.address(), .filter = filter.address(), .y = y.address(), .bias = bias.address()},
      workspace.address());
  const OnDevice& output = c.key.kind == ConvKind::forward          ? y
                           : c.key.kind == ConvKind::input_gradient ? x
                                                                    : filter;
  output.read(c.output());
  return true;
}

TEST_CASE("device convolutions: forward and both gradients of random geometries") {
  RandomStream random(31, 0);
  for (int round = 0; round < 72; ++round) {
    ConvKey key{.kind = static_cast<ConvKind>(round % 3), .geometry = random_geometry(random)};
    key.dtype = random_dtype(random);
    key.float32 = pick(random, {Float32Math::ieee, Float32Math::tf32});
    CAPTURE(to_string(key));
    ConvCase c(key, random);
    const std::vector<double> wanted = c.wanted();
    REQUIRE(run(c));
    for (std::int64_t i = 0; i < c.output().elements(); ++i) {
      const double want = wanted[static_cast<std::size_t>(i)];
      REQUIRE(std::abs(element_as_double(c.output().view(), i) - want) <= c.allowed(want));
    }
  }
}

TEST_CASE("device convolutions: bias and ReLU in the same pass, where the library has them") {
  RandomStream random(32, 0);
  for (int round = 0; round < 24; ++round) {
    ConvKey key{.geometry = random_geometry(random)};
    key.dtype = random_dtype(random);
    key.bias = true;
    key.relu = random.below(2) == 1;
    CAPTURE(to_string(key));
    ConvCase c(key, random);
    const std::vector<double> wanted = c.wanted();
    if (!run(c)) {
      MESSAGE("no plan for " << to_string(key));
      continue;
    }
    for (std::int64_t i = 0; i < c.output().elements(); ++i) {
      const double want = wanted[static_cast<std::size_t>(i)];
      REQUIRE(std::abs(element_as_double(c.output().view(), i) - want) <= c.allowed(want));
    }
  }
}

TEST_CASE("device convolutions: the same bits each time") {
  RandomStream random(33, 0);
  for (int round = 0; round < 9; ++round) {
    ConvKey key{.kind = static_cast<ConvKind>(round % 3), .geometry = random_geometry(random)};
    key.geometry.batch = 16;
    key.dtype = random_dtype(random);
    CAPTURE(to_string(key));
    ConvCase c(key, random);
    REQUIRE(run(c));
    const Tensor first = c.output().clone();
    REQUIRE(run(c));
    CHECK(std::memcmp(first.view().data, c.output().view().data, first.bytes()) == 0);
  }
}

}  // namespace
}  // namespace halfstep::testing

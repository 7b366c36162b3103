// Trials of a library's convolutions: a right one passes, and one with a fault does not.

#include "backend/cuda/vendor/conv_trial.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "backend/cuda/vendor/emulated/libraries.h"
#include "core/tensor.h"
#include "support/cuda/conv_case.h"
#include "support/cuda/random_values.h"

namespace halfstep::backend::cuda {
namespace {

using halfstep::testing::pick;
using halfstep::testing::random_geometry;

/// The operands of a trial in memory, each as long as its tensor.
struct Operands {
  explicit Operands(const ConvArguments& c)
      : arguments(c),
        x(filled(c, c.x, ConvOperand::x)),
        filter(filled(c, c.filter, ConvOperand::filter)),
        y(filled(c, c.y, ConvOperand::y)),
        bias(filled(c, c.bias, ConvOperand::bias)) {}

  static Tensor filled(const ConvArguments& c, const ConvTensor& shape, ConvOperand operand) {
    const std::vector<float> values = trial_values(operand);
    Tensor wide(DType::float32, Shape{shape.elements()}), tensor(c.dtype, wide.shape());
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      wide.view().as<float>()[i] = values[static_cast<std::size_t>(i) % values.size()];
    }
    convert(wide.view(), tensor.view());
    return tensor;
  }

  /// The fault that a trial finds in a library that takes these arguments for those of the trial.
  std::optional<std::string> fault_of(const ConvArguments& taken) {
    Tensor& result = arguments.kind == ConvKind::forward          ? y
                     : arguments.kind == ConvKind::input_gradient ? x
                                                                  : filter;
    emulated::run_conv(taken,
                       x.view().data,
                       filter.view().data,
                       y.view().data,
                       taken.bias.elements() > 0 ? bias.view().data : nullptr);
    return conv_fault(arguments,
                      [&](std::int64_t i) { return element_as_double(result.view(), i); });
  }

  ConvArguments arguments;
  Tensor x, filter, y, bias;
};

constexpr std::array k_kinds{
    ConvKind::forward, ConvKind::input_gradient, ConvKind::filter_gradient};

/// A convolution of 3 x 3 with strides of 2 over an even image: one cell of padding at the end.
ConvArguments strided(ConvKind kind, DType dtype, std::int64_t batch = 16) {
  ConvKey key{.kind = kind, .geometry = {}, .dtype = dtype};
  key.geometry.window = {graph::ops::window_axis(28, 3, 2, 1, "SAME"),
                         graph::ops::window_axis(28, 3, 2, 1, "SAME")};
  key.geometry.batch = batch;
  key.geometry.inputs = key.geometry.group_inputs = 8;
  key.geometry.outputs = key.geometry.group_outputs = 16;
  return conv_arguments(key);
}

TEST_CASE("conv trial: right results of random geometries pass, in every dtype") {
  RandomStream random(21, 0);
  for (int round = 0; round < 120; ++round) {
    ConvKey key{.kind = k_kinds.at(static_cast<std::size_t>(round) % 3),
                .geometry = random_geometry(random)};
    key.dtype = pick(random, {DType::float16, DType::bfloat16, DType::float32});
    key.bias = key.kind == ConvKind::forward && random.below(2) == 1;
    key.relu = key.bias && random.below(2) == 1;
    CAPTURE(to_string(key));
    const ConvArguments arguments = conv_arguments(key);
    CHECK(Operands(arguments).fault_of(arguments).value_or("") == "");
  }
}

TEST_CASE("conv trial: padding on the wrong side, other strides and lost terms are found") {
  for (const ConvKind kind : k_kinds) {
    for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32}) {
      const ConvArguments right = strided(kind, dtype);
      CHECK_FALSE(Operands(right).fault_of(right).has_value());
      ConvArguments shifted = right;
      std::swap(shifted.pre_padding, shifted.post_padding);
      CHECK(Operands(right).fault_of(shifted).has_value());
      ConvArguments across = right;
      std::swap(across.pre_padding[1], across.post_padding[1]);
      CHECK(Operands(right).fault_of(across).has_value());
      // Half of the batch, of which the rest of the result keeps its old values.
      ConvArguments half = right;
      half.x.extents[0] /= 2;
      half.y.extents[0] /= 2;
      CHECK(Operands(right).fault_of(half).has_value());
    }
  }
  ConvArguments right = strided(ConvKind::forward, DType::float16);
  right.bias = {{1, 16, 1, 1}, {16, 1, 16, 16}};
  ConvArguments without = right;
  without.bias = {};
  CHECK(Operands(right).fault_of(without).has_value());
  right.relu = true;
  without = right;
  without.relu = false;
  CHECK(Operands(right).fault_of(without).has_value());
}

TEST_CASE(
    "conv trial: long sums of a filter's gradient pass, and fail without an eighth of the images") {
  const ConvArguments right = strided(ConvKind::filter_gradient, DType::float16, 400);
  CHECK_FALSE(Operands(right).fault_of(right).has_value());
  ConvArguments less = right;
  less.x.extents[0] = less.y.extents[0] = 350;
  const auto fault = Operands(right).fault_of(less);
  REQUIRE(fault.has_value());
  CHECK(fault->starts_with("element "));
  CHECK(fault->find(" instead of ") != std::string::npos);
}

TEST_CASE("conv trial: a result that is not a number is a fault") {
  const ConvArguments c = strided(ConvKind::forward, DType::float32);
  CHECK(conv_fault(c, [](std::int64_t) { return std::nan(""); }).has_value());
}

}  // namespace
}  // namespace halfstep::backend::cuda

// precision.grad_dtype: the dtype of weight gradients, against matmuls in double.

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>
#include <string_view>

#include "core/error.h"
#include "train/fixture.h"

namespace halfstep::train {
namespace {

/// The weight gradients of the first step of a dense layer, and their operands.
struct Gradient {
  Tensor kernel, bias;  ///< as they leave the backward pass, float32
  Tensor x, dy;         ///< operands of the kernel's matmul, in the compute dtype
};

Tensor copy(const TensorView& view) {
  Tensor tensor(DType::float32, view.shape);
  convert(view, tensor.view());
  return tensor;
}

Gradient first_gradient(std::string_view policy, std::string_view grad_dtype) {
  TinyRun tiny;
  tiny.layers = R"(
    - {type: flatten}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  tiny.precision =
      fmt::format("{{policy: {}, grad_dtype: {}, loss_scale: {{mode: none}}}}", policy, grad_dtype);
  tiny.training = "{epochs: 1, batch_size: 96}";
  Run run(tiny.spec());
  run.trainer().advance(1);
  Gradient found;
  run.session().trace_plan(96)->trace([&](const graph::Node& node,
                                          std::span<const TensorView> inputs,
                                          std::span<const TensorView> outputs) {
    if (node.op == "AllFinite") {
      REQUIRE(inputs.size() == 2);
      found.kernel = copy(inputs[0]);
      found.bias = copy(inputs[1]);
    }
    if (node.origin.phase == graph::Phase::backward && node.op == "MatMul" &&
        outputs[0].shape == Shape{784, 10}) {
      found.x = copy(inputs[0]);
      found.dy = copy(inputs[1]);
    }
  });
  return found;
}

/// Sum over the batch of x[b, i] dy[b, j], or of dy[b, j] alone, and of the magnitudes.
struct Exact {
  double sum = 0;
  double magnitude = 0;
};

Exact exact(const Gradient& g, std::int64_t i, std::int64_t j) {
  Exact result;
  const std::int64_t batch = g.dy.shape()[0];
  for (std::int64_t b = 0; b < batch; ++b) {
    const double x = i < 0 ? 1 : static_cast<double>(g.x.as<float>()[b * 784 + i]);
    const double term = x * static_cast<double>(g.dy.as<float>()[b * 10 + j]);
    result.sum += term;
    result.magnitude += std::abs(term);
  }
  return result;
}

/// Elements that are further from the exact value than sums in float32 can be.
std::int64_t count_rounded(const Gradient& g) {
  std::int64_t rounded = 0;
  const auto compare = [&](double value, const Exact& e) {
    const double tolerance = static_cast<double>(g.dy.shape()[0]) * 0x1p-24 * e.magnitude;
    rounded += std::abs(value - e.sum) > tolerance ? 1 : 0;
  };
  for (std::int64_t j = 0; j < 10; ++j) {
    compare(static_cast<double>(g.bias.as<float>()[j]), exact(g, -1, j));
    for (std::int64_t i = 0; i < 784; ++i) {
      compare(static_cast<double>(g.kernel.as<float>()[i * 10 + j]), exact(g, i, j));
    }
  }
  return rounded;
}

}  // namespace

TEST_CASE("grad_dtype: float32 keeps what compute rounds away") {
  for (std::string_view policy : {"mixed_float16", "mixed_bfloat16"}) {
    CAPTURE(policy);
    const Gradient wide = first_gradient(policy, "float32");
    const Gradient narrow = first_gradient(policy, "compute");
    REQUIRE(wide.kernel.shape() == Shape{784, 10});
    REQUIRE(narrow.x.elements() == 96 * 784);
    CHECK(count_rounded(wide) == 0);
    CHECK(count_rounded(narrow) > 1000);
    // Rounded once, every element is a number of the compute dtype.
    const DType compute = policy == "mixed_float16" ? DType::float16 : DType::bfloat16;
    Tensor half(compute, narrow.kernel.shape());
    Tensor back(DType::float32, narrow.kernel.shape());
    convert(narrow.kernel.view(), half.view());
    convert(half.view(), back.view());
    bool same = true;
    for (std::int64_t i = 0; i < back.elements(); ++i) {
      same = same && back.as<float>()[i] == narrow.kernel.as<float>()[i];
    }
    CHECK(same);
  }
}

TEST_CASE("grad_dtype: training runs with it and gives other weights") {
  TinyRun tiny;
  const auto hash = [&](std::string_view precision) {
    tiny.precision = precision;
    Run run(tiny.spec());
    const TrainResult result = run.finish();
    CHECK(result.status == Status::completed);
    return result.final_hash;
  };
  CHECK(hash("{policy: mixed_float16, grad_dtype: float32}") != hash("{policy: mixed_float16}"));
  CHECK(hash("{policy: float32, grad_dtype: float32}") == hash("{policy: float32}"));
}

TEST_CASE("grad_dtype: float32 is refused where it could not be kept") {
  for (std::string_view precision : {"{policy: float16, grad_dtype: float32}",
                                     "{policy: bfloat16, grad_dtype: float32}",
                                     "{rewrite: auto, grad_dtype: float32}"}) {
    CAPTURE(precision);
    TinyRun tiny;
    tiny.precision = precision;
    CHECK_THROWS_WITH_AS(tiny.spec(), doctest::Contains("precision.grad_dtype"), UserError);
  }
}

}  // namespace halfstep::train

// cuDNN has plans for every convolution of the shipped configs on every generation of GPUs. It is
// queried without a GPU, by the devices' properties.

#include "backend/cuda/vendor/real/conv_plans.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ostream>
#include <set>
#include <string>
#include <string_view>

#include "cuda_toolkit/shipped_convolutions.h"
#include "support/paths.h"

namespace halfstep::backend::cuda::real {
namespace {

struct Device {
  std::string_view file;
  bool has_bfloat16;
};
constexpr Device k_devices[] = {{"t4", false},
                                {"a100", true},
                                {"rtx4090", true},
                                {"h100", true},
                                {"h200", true},
                                {"b200", true}};

ConvTarget target(const Device& device) {
  const auto path =
      test::source_dir() / "tests/cuda/devices" / (std::string(device.file) + ".json");
  std::ifstream file(path);
  return {.properties = device_properties(
              {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()})};
}

/// The first plan; its description is empty where there is none.
ConvPlan first_plan(const ConvKey& key, const ConvTarget& target) {
  const auto plans = conv_plans(conv_arguments(key), target, 1);
  return plans.empty() ? ConvPlan{} : plans.front();
}

TEST_CASE("cuDNN plans: every convolution of the shipped configs, on every device") {
  const std::vector<ConvKey> keys = testing::shipped_convolutions();
  CHECK(keys.size() > 50);
  for (const Device& device : k_devices) {
    CAPTURE(device.file);
    const ConvTarget on = target(device);
    for (ConvKey key : keys) {
      CAPTURE(to_string(key));
      if (key.dtype == DType::bfloat16 && !device.has_bfloat16) continue;
      // As configs ask for by default: strict float32, deterministic.
      const ConvPlan plan = first_plan(key, on);
      CHECK_FALSE(plan.description.empty());
      CHECK(plan.description.find("any order") == std::string::npos);
      if (key.dtype == DType::float32) CHECK_FALSE(plan.tensor_cores);
    }
  }
}

TEST_CASE("cuDNN plans: bias and ReLU in the same pass") {
  const ConvTarget h100 = target({"h100", true});
  for (ConvKey key : testing::shipped_convolutions()) {
    if (key.kind != ConvKind::forward) continue;
    key.bias = true;
    for (const bool relu : {false, true}) {
      key.relu = relu;
      CAPTURE(to_string(key));
      CHECK_FALSE(first_plan(key, h100).description.empty());
    }
  }
}

TEST_CASE("cuDNN plans: large batches of strict float32 have memory to transpose") {
  const ConvTarget h200 = target({"h200", true});
  ConvKey key;
  key.geometry.window = {graph::ops::window_axis(26, 3, 1, 1, "VALID"),
                         graph::ops::window_axis(26, 3, 1, 1, "VALID")};
  key.geometry.batch = 1024;
  key.geometry.inputs = key.geometry.group_inputs = 32;
  key.geometry.outputs = key.geometry.group_outputs = 64;
  // With engine 0, the direct sum, a step of mnist_cnn takes 49 ms on an H200.
  for (const ConvKind kind : {ConvKind::forward, ConvKind::input_gradient}) {
    key.kind = kind;
    const ConvPlan plan = first_plan(key, h200);
    CHECK(plan.workspace_bytes > 0);
    CHECK(plan.workspace_bytes <= conv_workspace_limit(conv_arguments(key)));
    CHECK(plan.description != "engine 0");
  }
}

TEST_CASE("cuDNN plans: several of one engine differ in its knobs") {
  ConvKey key;
  key.geometry.window = {graph::ops::window_axis(28, 3, 2, 1, "SAME"),
                         graph::ops::window_axis(28, 3, 2, 1, "SAME")};
  key.geometry.batch = 256;
  key.geometry.inputs = key.geometry.group_inputs = 16;
  key.geometry.outputs = key.geometry.group_outputs = 32;
  std::set<std::string> engines, configurations;
  std::size_t plans = 0;
  for (const ConvPlan& plan : conv_plans(conv_arguments(key), target({"h100", true}), 8)) {
    // Engines without knobs are proposed by the fallback again.
    if (plan.knobs.empty()) continue;
    ++plans;
    engines.insert(plan.description);
    configurations.insert(plan.description + plan.knobs);
  }
  CHECK(engines.size() < plans);
  CHECK(configurations.size() == plans);
}

TEST_CASE("cuDNN plans: TensorFloat-32 is taken when it is allowed and there, and only then") {
  ConvKey key;
  key.geometry.window = {graph::ops::window_axis(28, 3, 1, 1, "SAME"),
                         graph::ops::window_axis(28, 3, 1, 1, "SAME")};
  key.geometry.batch = 128;
  key.geometry.inputs = key.geometry.group_inputs = 32;
  key.geometry.outputs = key.geometry.group_outputs = 64;
  for (const Device& device : k_devices) {
    CAPTURE(device.file);
    const ConvTarget on = target(device);
    const auto on_tensor_cores = [&](Float32Math math) {
      key.float32 = math;
      return first_plan(key, on).tensor_cores;
    };
    CHECK_FALSE(on_tensor_cores(Float32Math::ieee));
    // Turing has no TensorFloat-32; bfloat16 came with the same generation.
    CHECK(on_tensor_cores(Float32Math::tf32) == device.has_bfloat16);
  }
}

TEST_CASE("cuDNN plans: no bfloat16 before Ampere") {
  ConvKey key;
  key.geometry.window = {graph::ops::window_axis(8, 3, 1, 1, "SAME"),
                         graph::ops::window_axis(8, 3, 1, 1, "SAME")};
  key.geometry.batch = 8;
  key.geometry.inputs = key.geometry.group_inputs = 8;
  key.geometry.outputs = key.geometry.group_outputs = 8;
  key.dtype = DType::bfloat16;
  CHECK(first_plan(key, target({"t4", false})).description.empty());
}

TEST_CASE("cuDNN plans: properties that are none are refused in cuDNN's words") {
  CHECK_THROWS_AS(device_properties("{}"), VendorError);
}

}  // namespace
}  // namespace halfstep::backend::cuda::real

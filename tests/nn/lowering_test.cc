// Which ops each layer becomes: users meet them in `explain`, and the lists of the automatic
// rewrite decide about them by name.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <ostream>

#include "nn/model_text.h"

namespace halfstep::nn {
namespace {

using test::BuiltModel;

/// The ops of the layer `it` in order, each with its dtype when it computes in another one than
/// float32, without constants and reads.
std::string ops_of(const BuiltModel& built) {
  std::string text;
  for (int id = 0; id < built.graph.size(); ++id) {
    const graph::Node& node = built.graph.node(id);
    if (node.origin.layer != "it" || node.op == "Const" || node.op == "VarHandleOp" ||
        node.op == "ReadVariableOp") {
      continue;
    }
    const DType dtype = node.outputs.at(0).dtype;
    text += fmt::format("{}{}", text.empty() ? "" : " ", node.op);
    if (dtype != DType::float32) text += fmt::format(":{}", name(dtype));
  }
  return text;
}

std::string ops_of(std::string_view input,
                   std::string_view layer,
                   std::string_view policy = "float32",
                   bool training = true) {
  const test::ModelText text =
      test::good_model(fmt::format("{{input: {}, layers: [{{name: it, {}}}]}}", input, layer),
                       fmt::format("{{policy: {}}}", policy));
  return ops_of(test::build_model(text.model, 2, training));
}

TEST_CASE("lowering: layers become the ops of Keras's TensorFlow backend") {
  struct Case {
    std::string_view input;
    std::string_view layer;
    std::string_view ops;
  };
  constexpr Case k_cases[] = {
      {"[4]", "type: dense, units: 2, activation: relu", "MatMul BiasAdd Relu"},
      {"[4]", "type: dense, units: 2, use_bias: false", "MatMul"},
      {"[3, 4]", "type: dense, units: 2", "Reshape MatMul Reshape BiasAdd"},
      {"[4, 4, 2]", "type: conv2d, filters: 2, kernel_size: 3", "Conv2D BiasAdd"},
      {"[4, 4, 2]", "type: depthwise_conv2d, kernel_size: 3", "DepthwiseConv2dNative BiasAdd"},
      {"[4, 4, 2]", "type: max_pooling2d", "MaxPool"},
      {"[4, 4, 2]", "type: average_pooling2d", "AvgPool"},
      {"[4, 4, 2]", "type: global_average_pooling2d", "Mean"},
      {"[4, 4, 2]", "type: global_max_pooling2d", "Max"},
      {"[4, 4, 2]", "type: flatten", "Reshape"},
      {"[4]", "type: flatten", ""},
      {"[4]", "type: reshape, target_shape: [2, 2]", "Reshape"},
      {"[4, 4, 2]", "type: zero_padding2d", "Pad"},
      {"[4]", "type: relu", "Relu"},
      {"[4]", "type: relu, negative_slope: 0.1", "LeakyRelu"},
      {"[4]", "type: relu, max_value: 6", "Relu6"},
      {"[4]", "type: relu, max_value: 1", "Relu Minimum Maximum"},
      {"[4]", "type: relu6", "Relu6"},
      {"[4]", "type: leaky_relu", "LeakyRelu"},
      {"[4]", "type: elu", "Elu"},
      {"[4]", "type: elu, alpha: 2", "Elu Greater:bool Mul SelectV2"},
      {"[4]", "type: selu", "Selu"},
      {"[4]", "type: gelu", "Gelu"},
      {"[4]", "type: gelu, approximate: true", "GeluApproximate"},
      {"[4]", "type: silu", "Sigmoid Mul"},
      {"[4]", "type: sigmoid", "Sigmoid"},
      {"[4]", "type: tanh", "Tanh"},
      {"[4]", "type: softplus", "Softplus"},
      {"[4]", "type: softmax", "Softmax"},
      {"[3, 4]", "type: softmax, axis: 1", "Transpose Softmax Transpose"},
      {"[4]", "type: log_softmax", "LogSoftmax"},
      {"[4]", "type: linear", ""},
      {"[4]", "type: rescaling, scale: 2", "Mul AddV2"},
      {"[4]",
       "type: dropout, rate: 0.5",
       "RandomUniformFromOrdinal GreaterEqual:bool Mul Cast Mul"},
      {"[4]", "type: dropout, rate: 0", ""},
      {"[4]",
       "type: gaussian_noise, stddev: 0.5",
       "RandomUniformFromOrdinal Mul AddV2 Erfinv Mul Mul AddV2"},
      {"[4]", "type: gaussian_noise, stddev: 0", ""},
      {"[4]",
       "type: gaussian_dropout, rate: 0.5",
       "RandomUniformFromOrdinal Mul AddV2 Erfinv Mul Mul AddV2 Mul"},
      {"[4, 4, 2]", "type: random_flip", "RandomFlip"},
      {"[4, 4, 2]",
       "type: random_translation, height_factor: 0.1, width_factor: 0.1",
       "RandomTranslation"},
      {"[4, 4, 2]", "type: batch_normalization", "FusedBatchNormV3 Mul Mul AddV2 Mul Mul AddV2"},
      {"[4]",
       "type: batch_normalization",
       "Reshape FusedBatchNormV3 Mul Mul AddV2 Mul Mul AddV2 Reshape"},
      {"[4]", "type: layer_normalization", "LayerNorm"},
      {"[3, 4]",
       "type: layer_normalization, axis: 1",
       "Reshape Reshape Mean StopGradient SquaredDifference Mean AddV2 Rsqrt Mul Neg Mul AddV2 Mul "
       "AddV2"},
      {"[4]",
       "type: dense, units: 2, use_bias: false, kernel_regularizer: {l1: 1, l2: 1}",
       "Abs Sum Mul Square Sum Mul AddV2 MatMul"},
      {"[4]", "type: linear, activity_regularizer: l2", "Square Sum Mul RealDiv"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.layer);
    CHECK(ops_of(c.input, c.layer) == c.ops);
  }
}

TEST_CASE("lowering: in inference random layers vanish and statistics stand still") {
  CHECK(ops_of("[4]", "type: dropout, rate: 0.5", "float32", false) == "");
  CHECK(ops_of("[4]", "type: gaussian_noise, stddev: 0.5", "float32", false) == "");
  CHECK(ops_of("[4]", "type: gaussian_dropout, rate: 0.5", "float32", false) == "");
  CHECK(ops_of("[4, 4, 2]", "type: random_flip", "float32", false) == "");
  CHECK(ops_of("[4, 4, 2]",
               "type: random_translation, height_factor: 0.1, width_factor: 0.1",
               "float32",
               false) == "");
  CHECK(ops_of("[4, 4, 2]", "type: batch_normalization", "float32", false) == "FusedBatchNormV3");
  CHECK(ops_of("[4, 4, 2]", "type: batch_normalization, trainable: false") == "FusedBatchNormV3");
}

TEST_CASE("lowering: under a mixed policy what needs float32 stays in it") {
  struct Case {
    std::string_view layer;
    std::string_view ops;
  };
  constexpr Case k_cases[] = {
      {"type: dense, units: 2",
       "Cast:float16 Cast:float16 MatMul:float16 Cast:float16 BiasAdd:float16"},
      {"type: dropout, rate: 0.5",
       "Cast:float16 RandomUniformFromOrdinal GreaterEqual:bool Mul:float16 Cast:float16 "
       "Mul:float16"},
      {"type: gaussian_noise, stddev: 0.5",
       "Cast:float16 RandomUniformFromOrdinal Mul AddV2 Erfinv Mul Cast:float16 Mul:float16 "
       "AddV2:float16"},
      {"type: batch_normalization",
       "Cast:float16 Reshape:float16 FusedBatchNormV3:float16 Mul Mul AddV2 Mul Mul AddV2 "
       "Reshape:float16"},
      {"type: layer_normalization", "Cast:float16 LayerNorm:float16"},
      {"type: softmax", "Cast:float16 Softmax:float16"},
      {"type: dense, units: 2, use_bias: false, kernel_regularizer: l2",
       "Cast:float16 Square Sum Mul Cast:float16 MatMul:float16"},
      {"type: linear, activity_regularizer: l2", "Cast:float16 Cast Square Sum Mul RealDiv"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.layer);
    CHECK(ops_of("[4]", c.layer, "mixed_float16") == c.ops);
  }
}

TEST_CASE("lowering: parameters and statistics of norms are float32 under every policy") {
  for (const precision::Policy& policy : precision::all_policies()) {
    CAPTURE(policy.name);
    const test::ModelText text = test::good_model(
        "{input: [4], layers: [{type: batch_normalization}, {type: layer_normalization}]}",
        fmt::format("{{policy: {}}}", policy.name));
    const BuiltModel built = test::build_model(text.model, 2, true);
    CHECK(built.graph.variables().size() == 6);
    for (const graph::Variable& variable : built.graph.variables()) {
      CAPTURE(variable.name);
      CHECK(variable.type.dtype == DType::float32);
      const bool statistic = variable.name.find("moving") != std::string::npos;
      CHECK(variable.role == (statistic ? graph::Role::statistic : graph::Role::weight));
      CHECK(variable.trainable != statistic);
    }
    CHECK(built.forward.record.assignments.size() == 2);
  }
}

TEST_CASE("lowering: a pure 16-bit policy stores its weights in 16 bits") {
  const test::ModelText text =
      test::good_model("{input: [4], layers: [{type: dense, units: 2, kernel_regularizer: l2}]}",
                       "{policy: bfloat16}");
  const BuiltModel built = test::build_model(text.model, 2, true);
  for (const graph::Variable& variable : built.graph.variables()) {
    CHECK(variable.type.dtype == DType::bfloat16);
  }
  // The penalty is a float32 number all the same.
  CHECK(built.graph.type(built.forward.record.losses.at(0)).dtype == DType::float32);
}

}  // namespace
}  // namespace halfstep::nn

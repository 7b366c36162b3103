#include "nn/model.h"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <ostream>

#include "nn/model_text.h"

namespace halfstep::nn {
namespace {

using test::good_model;
using test::ModelText;
using test::read_model_text;

std::vector<std::string> names(const Model& model) {
  std::vector<std::string> all;
  for (const ModelNode& node : model.nodes) all.push_back(node.name);
  return all;
}

TEST_CASE("model: layers without a name are called by their type and number") {
  const ModelText text = good_model(R"(
  input: [4, 4, 1]
  layers:
    - {type: flatten}
    - {type: dense, units: 4}
    - {type: relu}
    - {type: dense, units: 4, name: dense_1}
    - {type: dense, units: 4}
    - {type: relu}
)");
  CHECK(names(text.model) ==
        std::vector<std::string>{"flatten", "dense", "relu", "dense_1", "dense_2", "relu_1"});
  CHECK(text.model.inputs.at(0).shape == Shape{4, 4, 1});
  CHECK(text.model.nodes[0].from == std::vector<Source>{{-1}});
  CHECK(text.model.nodes[5].from == std::vector<Source>{{4}});
  CHECK(text.model.outputs == std::vector<Source>{{5}});
}

TEST_CASE("model: a graph is put in order whatever the order of its nodes") {
  const ModelText text = good_model(R"(
  inputs: {image: [6, 6, 2], side: [4]}
  nodes:
    out: {type: dense, units: 3, from: cat}
    cat: {type: concatenate, from: [gap, fc]}
    sum: {type: add, from: [r1, c2, r1]}
    gap: {type: global_average_pooling2d, from: sum}
    c2: {type: conv2d, filters: 4, kernel_size: 3, padding: same, from: r1}
    r1: {type: relu, from: c1}
    c1: {type: conv2d, filters: 4, kernel_size: 3, padding: same, from: image}
    fc: {type: dense, units: 2, from: side}
  outputs: [out]
)");
  const Model& model = text.model;
  CHECK(names(model) ==
        std::vector<std::string>{"c1", "r1", "c2", "sum", "gap", "fc", "cat", "out"});
  CHECK(model.nodes[0].from == std::vector<Source>{{-1}});
  CHECK(model.nodes[3].from == std::vector<Source>{{1}, {2}, {1}});
  CHECK(model.nodes[5].from == std::vector<Source>{{-2}});
  CHECK(model.nodes[6].from == std::vector<Source>{{4}, {5}});
  CHECK(model.outputs == std::vector<Source>{{7}});
  const test::BuiltModel built = test::build_model(model, 5, true);
  CHECK(built.graph.type(built.forward.outputs.at(0)).shape == Shape{5, 3});
}

TEST_CASE("model: several outputs are given in the order that was asked for") {
  const ModelText text = good_model(R"(
  inputs: {x: [4]}
  nodes:
    a: {type: dense, units: 3, from: x}
    b: {type: dense, units: 2, from: a}
  outputs: [b, a]
)");
  CHECK(text.model.outputs == std::vector<Source>{{1}, {0}});
}

TEST_CASE("model: what is wrong is said where it stands, all at once") {
  struct Case {
    std::string_view name;
    std::string_view model;
    std::vector<std::string> problems;
  };
  const Case cases[] = {
      {"unknown type and field",
       R"(
  input: [4]
  layers:
    - {type: desne, units: 3}
    - {type: dense, unit: 3}
    - {type: softmax, activation: relu}
)",
       {"8:14: unknown layer type 'desne' (did you mean 'dense'? 'halfstep help layers' "
        "lists all 91)",
        "9:7: missing required key 'units'",
        "9:21: unknown key 'unit' in model.layers[1] (did you mean 'units'?)",
        "10:23: unknown key 'activation' in model.layers[2] (known keys: name, type, dtype, "
        "trainable, activity_regularizer, from, axis)"}},
      {"a block in itself",
       R"(
  inputs: {x: [4]}
  blocks:
    a: {nodes: {y: {type: relu, from: input}, z: {block: b, from: y}}}
    b: {nodes: {y: {block: a, from: input}}}
  nodes:
    one: {block: a, count: 2, from: x}
    out: {type: dense, units: 3, from: one}
  outputs: out
)",
       {"9:28: block 'a' uses itself: a -> b -> a"}},
      {"mistakes in a block that is repeated",
       R"(
  inputs: {x: [4]}
  blocks:
    a: {nodes: {y: {type: dense, units: 0, from: input}, z: {type: densee, from: y}}}
    b: {parameters: {w: null}, nodes: {y: {type: dense, units: $w, from: input}}}
    c: {nodes: {y: {block: b, from: input}}}
  nodes:
    one: {block: a, count: 4, from: x}
    two: {block: c, count: 3, from: one}
  outputs: two
)",
       {"8:41: must be at least 1, got 0",
        "8:68: unknown layer type 'densee' (did you mean 'dense'? 'halfstep help layers' lists all "
        "91)",
        "10:20: block 'b' needs the parameter 'w'"}},
      {"layers that are no maps",
       R"(
  input: [4]
  layers:
    - [type, relu]
    - relu
    - {type: relu}
)",
       {"8:7: must be a map with the type of a layer, got a list",
        "9:7: must be a map with the type of a layer, got 'relu'"}},
      {"duplicate and bad names",
       R"(
  input: [4]
  layers:
    - {name: a, type: relu}
    - {name: a, type: relu}
    - {name: a/b, type: relu}
)",
       {"9:14: duplicate name 'a' (first at m:8:14)",
        "10:14: 'a/b' is not a name (letters, digits, '_', '-' and '.', starting with a letter, "
        "digit or '_')"}},
      {"from in a list of layers",
       R"(
  input: [4]
  layers:
    - {type: relu, from: x}
)",
       {"8:26: 'from' belongs to a graph of nodes; a layer takes the one before it (give `inputs`, "
        "`nodes` and `outputs` instead of `layers`)"}},
      {"unknown policy",
       R"(
  input: [4]
  layers:
    - {type: relu, dtype: mixed_float15}
)",
       {"8:27: must be one of float32, mixed_float16, mixed_bfloat16, float16, bfloat16, got "
        "'mixed_float15' (did you mean 'mixed_float16'?)"}},
      {"dangling names",
       R"(
  inputs: {image: [4]}
  nodes:
    first: {type: relu, from: imag}
    sum: {type: add, from: [first, secnd]}
    second: {type: relu}
  outputs: [sun, image]
)",
       {"8:31: no node or input is called 'imag' (did you mean 'image'?)",
        "9:36: no node or input is called 'secnd' (did you mean 'second'?)",
        "10:13: node 'second' needs 'from': the node or input it takes",
        "11:13: no node or input is called 'sun' (did you mean 'sum'?)",
        "11:18: 'image' is an input, not a node"}},
      {"a cycle",
       R"(
  inputs: {x: [4]}
  nodes:
    a: {type: add, from: [x, c]}
    b: {type: relu, from: a}
    c: {type: relu, from: b}
  outputs: c
)",
       {"8:8: the nodes form a cycle: a -> b -> c -> a"}},
      {"a node that takes itself",
       R"(
  inputs: {x: [4]}
  nodes:
    a: {type: relu, from: a}
  outputs: a
)",
       {"8:8: the nodes form a cycle: a -> a"}},
      {"nodes and inputs that lead nowhere",
       R"(
  inputs: {x: [4], y: [4]}
  nodes:
    a: {type: relu, from: x}
    b: {type: relu, from: a}
    c: {type: relu, from: b}
  outputs: a
)",
       {"6:23: no node uses the input 'y'",
        "9:5: node 'b' does not lead to an output (list it in `outputs` or remove it)",
        "10:5: node 'c' does not lead to an output (list it in `outputs` or remove it)"}},
      {"wrong numbers of inputs",
       R"(
  inputs: {x: [4]}
  nodes:
    a: {type: relu, from: [x, x]}
    b: {type: add, from: a}
  outputs: b
)",
       {"8:27: relu 'a' takes 1 input, got 2", "9:26: add 'b' takes 2 or more inputs, got 1"}},
      {"fields that do not go together",
       R"(
  input: [4, 4, 3]
  layers:
    - {type: conv2d, filters: 4, kernel_size: 3, strides: 2, dilation_rate: 2}
    - {type: conv2d, filters: 4, kernel_size: 3, groups: 3}
    - {type: max_pooling2d, data_format: channels_first}
    - {type: reshape, target_shape: [-1, -1]}
    - {type: dense, units: 2, kernel_initializer: {type: he_normal, stdev: 1}}
)",
       {"8:7: strides and dilation_rate may not both be above 1",
        "9:7: 4 filters cannot be split into 3 groups",
        "10:7: data_format channels_first is not supported (images are channels_last: [height, "
        "width, channels])",
        "11:7: only one extent of target_shape may be -1",
        "12:69: unknown key 'stdev' in model.layers[4].kernel_initializer (known keys: seed)"}},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const std::vector<std::string> problems = read_model_text(c.model).problems;
    CAPTURE(fmt::format("{}", fmt::join(problems, "\n")));
    CHECK(problems == c.problems);
  }
}

TEST_CASE("model: shapes that do not fit are reported at their layer") {
  struct Case {
    std::string_view model;
    std::string_view message;
  };
  constexpr Case k_cases[] = {
      {"{input: [4], layers: [{type: conv2d, filters: 2, kernel_size: 3}]}",
       "needs images [height, width, channels], got samples [4]"},
      {"{input: [2, 2, 3], layers: [{type: conv2d, filters: 4, kernel_size: 1, groups: 2}]}",
       "3 channels cannot be split into 2 groups"},
      {"{input: [1000000, 1000000], layers: [{type: flatten}, {type: dense, units: 1000}]}",
       "its kernel would have shape [1000000000000, 1000]: too large"},
      {"{input: [1000000, 1000000], layers: [{type: zero_padding2d}]}",
       "needs images [height, width, channels], got samples [1000000, 1000000]"},
      {"{input: [1, 1, 1], layers: [{type: zero_padding2d, padding: 1000000}, {type: "
       "zero_padding2d, padding: 1000000}, {type: dense, units: 1000}]}",
       "its output would have shape [2, 4000001, 4000001, 1000]: too large"},
      {"{input: [4], layers: [{type: reshape, target_shape: [9000000000000, 9000000000000]}]}",
       "samples of 4 elements cannot be reshaped to [9000000000000, 9000000000000]"},
      {"{input: [4, 3], layers: [{type: reshape, target_shape: [5, -1]}]}",
       "samples of 12 elements cannot be reshaped to [5, -1]"},
      {"{input: [4], layers: [{type: softmax, axis: 2}]}",
       "axis 2 is not an axis of samples with 1 axes"},
      {"{input: [4], layers: [{type: batch_normalization, axis: 0}]}",
       "axis 0 is not an axis of samples with 1 axes"},
      {"{input: [2, 3], layers: [{type: permute, dims: [1, 1]}]}",
       "dims [1, 1] must name each of the 2 axes of a sample once, from 1"},
      {"{input: [2, 3], layers: [{type: permute, dims: [1, 2, 3]}]}",
       "dims [1, 2, 3] must name each of the 2 axes of a sample once, from 1"},
      {"{input: [2, 3], layers: [{type: repeat_vector, n: 2}]}",
       "samples must be vectors, these have 2 axes"},
      {"{input: [4, 4, 1], layers: [{type: cropping2d, cropping: 2}]}",
       "nothing is left of images of 4 x 4 pixels"},
      {"{input: [4], layers: [{type: prelu, shared_axes: [2]}]}",
       "axis 2 is not an axis of samples with 1 axes"},
      {"{inputs: {a: [2, 3], b: [4]}, nodes: {it: {type: dot, axes: -1, from: [a, b]}}, outputs: "
       "it}",
       "axis -1 of the first input has 3 elements, axis -1 of the second 4"},
      {"{inputs: {a: [2, 3], b: [3]}, nodes: {it: {type: dot, axes: 2, from: [a, b]}}, outputs: "
       "it}",
       "axis 2 is not an axis of samples with 1 axes"},
      {"{input: [1000000, 1000000, 1], layers: [{type: up_sampling2d, size: 1000000}]}",
       "its output would have 2e+18 elements: too many"},
  };
  for (const Case& c : k_cases) {
    CAPTURE(c.model);
    const ModelText text = good_model(c.model);
    try {
      test::build_model(text.model, 2, true);
      FAIL("no error");
    } catch (const UserError& error) {
      CHECK(error.problems().at(0).message == c.message);
      CHECK(error.problems().at(0).where.line == 5);
    }
  }
}

TEST_CASE("model: an override by name beats a layer's dtype, which beats an expression") {
  constexpr std::string_view k_model = R"(
  input: [4]
  layers:
    - {name: a, type: relu}
    - {name: b, type: relu, dtype: bfloat16}
    - {name: c, type: relu, dtype: bfloat16}
    - {name: last, type: relu}
)";
  const ModelText text = good_model(
      k_model,
      "{policy: mixed_float16, overrides: [{match: c, dtype: float32}, {match: 're:[abc]', dtype: "
      "mixed_bfloat16}, {match: 're:z', dtype: float32}]}");
  const std::vector<ModelNode>& nodes = text.model.nodes;
  CHECK(nodes[0].precision.policy.name == "mixed_bfloat16");
  CHECK(nodes[0].precision.reason == "override 're:[abc]'");
  CHECK(nodes[1].precision.policy.name == "bfloat16");
  CHECK(nodes[1].precision.reason == "layer dtype: bfloat16");
  CHECK(nodes[2].precision.policy.name == "float32");
  CHECK(nodes[2].precision.reason == "override 'c'");
  CHECK(nodes[3].precision.policy.name == "mixed_float16");
  CHECK(nodes[3].precision.reason == "policy mixed_float16");
  REQUIRE(text.model.warnings.size() == 2);
  CHECK(text.model.warnings[0].message == "replaces dtype bfloat16 of layer 'c' by float32");
  CHECK(text.model.warnings[1].message == "'re:z' matches no layer");
}

TEST_CASE("model: overrides that cannot be meant are errors") {
  constexpr std::string_view k_model = R"(
  input: [4]
  layers:
    - {name: ab, type: relu}
)";
  const auto problems = [&](std::string_view precision) {
    std::vector<std::string> found = read_model_text(k_model, precision).problems;
    CAPTURE(fmt::format("{}", fmt::join(found, "\n")));
    CHECK(found.size() == 1);
    return found;
  };
  CHECK(problems(
            "{overrides: [{match: 're:a.', dtype: float16}, {match: 're:.b', dtype: float16}]}") ==
        std::vector<std::string>{"4:67: layer 'ab' is matched by both 're:a.' and 're:.b' (an "
                                 "override with the layer's exact name decides)"});
  CHECK(problems("{overrides: [{match: abc, dtype: float16}]}") ==
        std::vector<std::string>{"4:33: no layer is called 'abc' (did you mean 'ab'?)"});
}

TEST_CASE("model: each floating input is cast to its layer's compute dtype, and only then") {
  const ModelText text = good_model(R"(
  input: [4]
  layers:
    - {name: a, type: relu, dtype: mixed_float16}
    - {name: b, type: relu, dtype: mixed_float16}
    - {name: c, type: relu, dtype: mixed_bfloat16}
    - {name: d, type: relu, dtype: float32}
)");
  const test::BuiltModel built = test::build_model(text.model, 2, false);
  std::vector<std::string> casts;
  for (int id = 0; id < built.graph.size(); ++id) {
    const graph::Node& node = built.graph.node(id);
    if (node.op != "Cast") continue;
    casts.push_back(fmt::format("{} {}", node.origin.layer, name(node.outputs[0].dtype)));
  }
  CHECK(casts == std::vector<std::string>{"a float16", "c bfloat16", "d float32"});
}

TEST_CASE("model: weights stay float32 under a mixed policy and are cast once per layer") {
  const ModelText text =
      good_model("{input: [4], layers: [{type: dense, units: 3, kernel_regularizer: l2}]}",
                 "{policy: mixed_float16}");
  const test::BuiltModel built = test::build_model(text.model, 2, true);
  CHECK(built.graph.find("dense/kernel/Cast") >= 0);
  for (const Weight& weight : built.forward.record.weights) {
    CAPTURE(weight.name);
    CHECK(built.graph.type(weight.read).dtype == DType::float32);
  }
  REQUIRE(built.forward.record.losses.size() == 1);
  // The penalty sees the stored weight, not the cast one.
  const graph::Value loss = built.forward.record.losses[0];
  CHECK(built.graph.type(loss).dtype == DType::float32);
  const graph::Node& square = built.graph.node(built.graph.find("dense/kernel_regularizer/Square"));
  CHECK(square.inputs[0] == built.forward.record.weights[0].read);
  CHECK(square.origin.phase == graph::Phase::loss);
}

TEST_CASE("model: a frozen layer has no trainable weight and no penalty on one") {
  const ModelText text = good_model(R"(
  input: [4]
  layers:
    - {type: dense, units: 3, trainable: false, kernel_regularizer: l2}
    - {type: batch_normalization, trainable: false}
    - {type: dense, units: 3}
)");
  const test::BuiltModel built = test::build_model(text.model, 2, true);
  std::vector<std::string> trained;
  for (const Weight& weight : built.forward.record.weights) trained.push_back(weight.name);
  CHECK(trained == std::vector<std::string>{"dense_1/kernel", "dense_1/bias"});
  CHECK(built.forward.record.losses.empty());
  CHECK(built.forward.record.assignments.empty());
  CHECK_FALSE(built.graph.variable("dense/kernel")->trainable);
}

}  // namespace
}  // namespace halfstep::nn

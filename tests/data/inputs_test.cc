// Several inputs of a model, from the arrays of one archive.

#include "data/inputs.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <ostream>
#include <utility>
#include <vector>

#include "named_sets.h"

namespace halfstep::data::testing {
namespace {

/// An archive of two inputs, image [2, 2, 1] and table [3], of 3 samples; the test set has 2.
struct TwoInputs {
  TempFolder folder;
  std::string path = folder.file("two.npz");
  std::vector<std::pair<std::string, Tensor>> arrays;
  DataOptions options = formatted("npz", path);

  explicit TwoInputs(DType image = DType::uint8, DType table = DType::float32) {
    options.inputs = {{"image", {2, 2, 1}}, {"table", {3}}};
    put("x_train_image", counting(image, {3, 2, 2}));
    put("x_train_table", counting(table, {3, 3}));
    put("y_train", counting(DType::int32, {3}));
    put("x_test_image", counting(image, {2, 2, 2}));
    put("x_test_table", counting(table, {2, 3}));
    put("y_test", counting(DType::int32, {2}));
  }

  void put(const std::string& name, Tensor array) {
    remove(name);
    arrays.emplace_back(name, std::move(array));
  }
  void remove(const std::string& name) {
    std::erase_if(arrays, [&](const auto& array) { return array.first == name; });
  }
  Dataset load() const {
    std::vector<NamedTensor> named;
    for (const auto& [name, array] : arrays) named.push_back({name, array.view()});
    write_npz(path, named);
    return load_dataset(options);
  }
  /// The values of sample `i` of the training set.
  std::vector<double> sample(std::int64_t i) const {
    const Dataset set = load();
    std::vector<double> values;
    for (std::int64_t k = 0; k < 7; ++k) {
      values.push_back(element_as_double(set.train.images.view(), i * 7 + k));
    }
    return values;
  }
};

/// float32, as the loader multiplies.
double byte(int value) {
  return static_cast<double>(static_cast<float>(value) * static_cast<float>(1.0 / 255.0));
}

TEST_CASE("inputs: the values of all of them follow each other in a sample") {
  const TwoInputs two;
  const Dataset set = two.load();
  CHECK(set.sample_shape == Shape{7});
  CHECK(set.train.samples() == 3);
  CHECK(set.test.samples() == 2);
  CHECK(set.classes == 3);
  CHECK(set.train.images.dtype() == DType::float32);
  REQUIRE(set.inputs.size() == 2);
  CHECK(set.inputs[1].name == "table");
  CHECK(two.sample(1) == std::vector<double>{byte(4), byte(5), byte(6), byte(7), 3, 4, 5});
}

TEST_CASE("inputs: bytes stay bytes where all are, and indices are never scaled") {
  TwoInputs two(DType::uint8, DType::uint8);
  const Dataset set = two.load();
  CHECK(set.train.images.dtype() == DType::uint8);
  CHECK(set.scale == 1.0 / 255.0);
  CHECK(two.sample(2) == std::vector<double>{8, 9, 10, 11, 6, 7, 8});
  two.options.inputs[1].index_limit = 9;
  CHECK(two.load().scale == 1);
  CHECK(two.sample(1) == std::vector<double>{byte(4), byte(5), byte(6), byte(7), 3, 4, 5});
  two.options.scale = 0.5;
  CHECK(two.sample(1) == std::vector<double>{2, 2.5, 3, 3.5, 3, 4, 5});
}

TEST_CASE("inputs: an archive may have no test set, and weights of samples") {
  TwoInputs two;
  for (const char* name : {"x_test_image", "x_test_table", "y_test"}) two.remove(name);
  two.put("w_train", counting(DType::float32, {3}));
  two.options.sample_weight = "w";
  const Dataset set = two.load();
  CHECK(set.test.samples() == 0);
  CHECK(set.train.weights.as<float>()[2] == 2);
  const TwoInputs whole;
  two.arrays.clear();
  for (const auto& [name, array] : whole.arrays) two.put(name, array.clone());
  two.put("w_train", counting(DType::float32, {3}));
  CHECK_THROWS_WITH_AS(
      two.load(), doctest::Contains("has a test set, but no array w_test"), UserError);
}

TEST_CASE("inputs: channels that are first in the file are last in the sample") {
  TwoInputs two(DType::float32);
  two.options.inputs[0].shape = {1, 2, 2};
  two.put("x_train_image", counting(DType::float32, {3, 2, 1, 2}));
  two.put("x_test_image", counting(DType::float32, {2, 2, 1, 2}));
  two.options.layout = Layout::nchw;
  CHECK(two.sample(0) == std::vector<double>{0, 2, 1, 3, 0, 1, 2});
}

TEST_CASE("inputs: the arrays of an archive tell the inputs and outputs that they are for") {
  TwoInputs two;
  two.put("x_train_image", counting(DType::uint8, {3, 3, 4, 5}));
  two.put("x_train_table", counting(DType::float32, {3, 3}));
  two.remove("y_train");
  two.put("y_train_kind", counting(DType::int32, {3}));
  two.put("y_train_size", counting(DType::float32, {3, 2}));
  two.options.inputs.clear();
  CHECK_THROWS_WITH_AS(
      two.load(),
      doctest::Contains("a config takes them with model.inputs: {image: [4, 5, 3], table: [3]} and "
                        "model.outputs: [kind, size]"),
      UserError);
  const NpzReader npz(two.path);
  const ElementSpec parts = element_spec_of(npz, std::nullopt);
  REQUIRE(parts.inputs.size() == 2);
  CHECK(parts.inputs[0].shape == Shape{4, 5, 3});
  REQUIRE(parts.outputs.size() == 2);
  CHECK(parts.outputs[1].name == "size");
  CHECK(element_spec_of(npz, Layout::nhwc).inputs[0].shape == Shape{3, 4, 5});
  two.remove("x_train_table");
  CHECK_THROWS_WITH_AS(two.load(),
                       doctest::Contains("a config takes them with model.outputs: [kind, size]"),
                       UserError);
  two.remove("y_train_size");
  CHECK_THROWS_WITH_AS(
      two.load(), doctest::Contains("the array of a model of one input is x_train"), UserError);
}

TEST_CASE("inputs: labels that are images have the order of the output's axes") {
  TwoInputs two;
  for (const char* name : {"x_test_image", "x_test_table", "y_test", "y_train"}) two.remove(name);
  two.put("y_train_back", counting(DType::float32, {3, 3, 1, 2}));
  two.put("y_train_kind", counting(DType::int32, {3}));
  const LabelSpec back{.name = "back", .output = Shape{1, 2, 3}};
  two.options.outputs = {back, {.name = "kind"}};
  const auto first = [&] {
    const Dataset set = two.load();
    const float* labels = set.train.labels.as<float>();
    CHECK(set.outputs[0].shape == Shape{1, 2, 3});
    return std::vector<float>(labels, labels + 7);
  };
  CHECK(first() == std::vector<float>{0, 2, 4, 1, 3, 5, 0});
  // Stored as the output is, whatever the samples are.
  two.put("y_train_back", counting(DType::float32, {3, 1, 2, 3}));
  CHECK(first() == std::vector<float>{0, 1, 2, 3, 4, 5, 0});
  two.options.layout = Layout::nchw;
  two.options.inputs[0].shape = {4};
  CHECK(first() == std::vector<float>{0, 1, 2, 3, 4, 5, 0});
  two.options.layout.reset();
  two.options.inputs[0].shape = {2, 2, 1};
  two.put("y_train_back", counting(DType::float32, {3, 2, 2, 2}));
  two.options.outputs[0].output = Shape{2, 2, 2};
  CHECK_THROWS_WITH_AS(two.load(),
                       doctest::Contains("labels of shape [2, 2, 2] fit the model's output as"),
                       UserError);

  // Of one output, too.
  two.options.outputs.clear();
  two.options.model_output = Shape{1, 2, 3};
  two.put("y_train", counting(DType::float32, {3, 3, 1, 2}));
  const Dataset one = two.load();
  CHECK(one.train.labels.shape() == Shape{3, 1, 2, 3});
  CHECK(one.train.labels.as<float>()[1] == 2);
}

TEST_CASE("inputs: integers below 0 are values of an output, as they are of a model of one") {
  TwoInputs two;
  two.remove("y_train");
  two.remove("y_test");
  Tensor signs = counting(DType::int64, {3});
  signs.as<std::int64_t>()[0] = -1;
  two.put("y_train_sign", std::move(signs));
  two.put("y_test_sign", counting(DType::int64, {2}));
  two.put("y_train_kind", counting(DType::int32, {3}));
  two.put("y_test_kind", counting(DType::int32, {2}));
  two.options.outputs = {{.name = "sign"}, {.name = "kind"}};
  const Dataset set = two.load();
  CHECK(set.outputs[0].dtype == DType::float32);
  CHECK(set.outputs[1].dtype == DType::int32);
  CHECK(set.train.labels.as<float>()[0] == -1);
}

TEST_CASE("inputs: names of the classes of each output") {
  TwoInputs two;
  for (const char* name : {"x_test_image", "x_test_table", "y_test", "y_train"}) two.remove(name);
  two.put("y_train_kind", counting(DType::int32, {3}));
  two.put("y_train_one_hot", counting(DType::float32, {3, 2}));
  two.options.outputs = {{.name = "kind"}, {.name = "one_hot"}};
  two.options.outputs[0].class_names = {"a", "b", "c", "d"};  // no sample is a d
  two.options.outputs[1].class_names = {"yes", "no"};
  const Dataset set = two.load();
  CHECK(set.outputs[0].classes == 4);
  CHECK(set.class_names_of(1) == std::vector<std::string>{"yes", "no"});
  two.options.outputs[0].class_names.resize(2);
  CHECK_THROWS_WITH_AS(
      two.load(), doctest::Contains("two.npz, output 'kind' has 3 classes"), UserError);
}

TEST_CASE("inputs: arrays that do not fit are refused with their names") {
  Tensor with_nan = counting(DType::float32, {3, 3});
  with_nan.as<float>()[4] = NAN;
  Tensor large = counting(DType::int64, {3, 3});
  large.as<std::int64_t>()[7] = (std::int64_t{1} << 24) + 1;
  struct Case {
    std::string_view name;
    std::string array;
    Tensor content;  ///< rank 0: the array is taken out
    std::string_view message;
  };
  const std::array cases{
      Case{
          "missing",
          "x_train_table",
          {},
          "two.npz: error: has no array x_train_table for the input 'table'; it has x_train_image, "
          "y_train, x_test_image, x_test_table, y_test"},
      Case{"misspelt", "x_train_table", {}, "(did you mean 'x_train_tables'?)"},
      Case{"shape",
           "x_train_table",
           counting(DType::float32, {3, 4}),
           "the array x_train_table has the shape [3, 4], the input 'table' takes samples of "
           "shape [3]"},
      Case{"axes",
           "x_train_image",
           counting(DType::uint8, {3, 4, 1, 1}),
           "the array x_train_image has the shape [3, 4, 1, 1], the input 'image' takes samples"},
      Case{"count",
           "x_train_table",
           counting(DType::float32, {4, 3}),
           "the array x_train_table has 4 samples, but x_train_image has 3"},
      Case{"labels", "y_train", counting(DType::int32, {4}), "has 3 images but 4 labels"},
      Case{"no labels", "y_train", {}, "has no y_train; it has"},
      Case{"half a test set", "y_test", {}, "has only one of x_test_image and y_test"},
      Case{"test array", "x_test_image", {}, "has no array x_test_image for the input 'image'"},
      Case{"no samples",
           "x_train_table",
           counting(DType::float32, {0, 3}),
           "the array x_train_table has the shape [0, 3]"},
      Case{"NaN",
           "x_train_table",
           with_nan.clone(),
           "array x_train_table: the values of sample 1 have nan (value 1; 1 in all)"},
      Case{"index",
           "x_train_table",
           large.clone(),
           "array x_train_table: sample 2 has the index 16777217, above 2^24"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    TwoInputs two;
    if (c.name == "misspelt") two.put("x_train_tables", counting(DType::float32, {3, 3}));
    if (c.name == "index") two.options.inputs[1].index_limit = 1 << 30;
    if (c.content.shape().rank() == 0) {
      two.remove(c.array);
    } else {
      two.put(c.array, c.content.clone());
    }
    const std::string message = error_of([&] { two.load(); });
    CAPTURE(message);
    CHECK(contains(message, c.message));
  }
}

}  // namespace
}  // namespace halfstep::data::testing

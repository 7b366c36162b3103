// Warnings of the samples and labels of a run: values that float16 does not hold, wherever the
// model rounds them to it, and labels that are all the same.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "config/warning_codes.h"
#include "train/fixture.h"

namespace halfstep::train {
namespace {

/// The messages of warnings of this code, each with a line end; "" without one.
std::string messages_of(std::string_view code, const TinyRun& tiny, const data::Dataset& dataset) {
  const Session session(tiny.spec(), dataset, cpu());
  std::string text;
  for (const config::Warning& warning : session.warnings()) {
    if (warning.code == code) text += warning.message + "\n";
  }
  return text;
}

std::string overflow_of(const TinyRun& tiny, const data::Dataset& dataset) {
  return messages_of(config::k_infinite_input, tiny, dataset);
}

data::Dataset as_floats(data::Dataset dataset) {
  for (data::Split* split : {&dataset.train, &dataset.test}) {
    Tensor floats(DType::float32, split->images.shape());
    convert(split->images.view(), floats.view());
    split->images = std::move(floats);
  }
  return dataset;
}

}  // namespace

TEST_CASE(
    "half inputs: a warning reports infinite ones where the model computes in float16, only") {
  data::Dataset dataset = as_floats(flat_digits());
  TinyRun tiny;
  tiny.model = "input: [784]\n  layers:";
  tiny.data = "{format: npz, path: x.npz, validation_split: 0.2}";
  tiny.precision = "{policy: mixed_float16}";
  CHECK(overflow_of(tiny, dataset).empty());
  float* const samples = dataset.train.images.as<float>();
  samples[3 * 784 + 5] = 65519;  // rounds to the largest number
  CHECK(overflow_of(tiny, dataset).empty());
  samples[3 * 784 + 5] = 65520;
  samples[7 * 784 + 9] = -1e6F;
  CHECK(
      overflow_of(tiny, dataset) ==
      "2 of 128 training samples have values that are infinite in float16, such as -1e+06, and "
      "layer 'flatten' takes them in it; standardise the values or give a smaller data.scale, and "
      "float32 and bfloat16 hold them\n");
  for (const std::string_view precision :
       {"{policy: float32}", "{policy: mixed_bfloat16}", "{rewrite: auto, target: bfloat16}"}) {
    CAPTURE(precision);
    tiny.precision = precision;
    CHECK(overflow_of(tiny, dataset).empty());
  }
  tiny.precision = "{rewrite: auto, target: float16}";
  CHECK(overflow_of(tiny, dataset).find("2 of 128 training samples") == 0);
  tiny.precision = "{policy: mixed_float16}";
  tiny.data = "{format: npz, path: x.npz, validation_split: 0.2, scale: 1e-3}";
  CHECK(overflow_of(tiny, dataset).empty());
  tiny.data = "{format: npz, path: x.npz}";
  tiny.layers.replace(tiny.layers.find("flatten"), 7, "flatten, dtype: float32");
  tiny.layers.replace(tiny.layers.find("units: 12"), 9, "units: 12, dtype: float32");
  CHECK(overflow_of(tiny, dataset).empty());
  // In the test set alone.
  tiny = TinyRun();
  tiny.model = "input: [784]\n  layers:";
  tiny.data = "{format: npz, path: x.npz}";
  tiny.precision = "{policy: float16}";
  dataset = as_floats(flat_digits());
  dataset.test.images.as<float>()[0] = 1e30F;
  CHECK(overflow_of(tiny, dataset).find("1 of 60 test samples") == 0);
}

TEST_CASE("half inputs: the column of a table and one of several inputs are named") {
  data::Dataset dataset = as_floats(flat_digits());
  dataset.train.images.as<float>()[5 * 784 + 400] = 1e6F;  // of the lower half
  TinyRun halves = digit_halves();
  halves.precision = "{policy: mixed_float16}";
  const std::string of_input = overflow_of(halves, dataset);
  CAPTURE(of_input);
  CHECK(of_input.find("1 of 128 training samples have values of the input 'lower'") == 0);
  CHECK(of_input.find("layer 'whole' takes them") != std::string::npos);

  dataset.train.images.as<float>()[784] = 2e6F;
  dataset.table.emplace();
  for (int i = 0; i < 784; ++i) {
    dataset.table->columns.push_back({"column " + std::to_string(i)});
  }
  TinyRun table;
  table.model = "input: [784]\n  layers:";
  table.data = "{format: csv, path: x.csv, table: {target: y, standardize: false}}";
  table.precision = "{policy: mixed_float16}";
  CHECK(
      overflow_of(table, dataset) ==
      "2 of 160 training samples have values of the column 'column 0' that are infinite in "
      "float16, such as 2e+06, and layer 'flatten' takes them in it; data.table.standardize: true "
      "scales the columns, and float32 and bfloat16 hold them\n");
}

TEST_CASE("labels: a warning reports outputs whose label is the same in all training samples") {
  TinyRun tiny;
  tiny.model = "input: [784]\n  layers:";
  tiny.data = "{format: npz, path: x.npz}";
  data::Dataset dataset = flat_digits();
  const auto equal_labels = [](const TinyRun& run, const data::Dataset& data) {
    return messages_of(config::k_equal_labels, run, data);
  };
  CHECK(equal_labels(tiny, dataset).empty());
  auto* const labels = dataset.train.labels.as<std::int32_t>();
  std::fill_n(labels, dataset.train.samples(), 3);
  CHECK(equal_labels(tiny, dataset) ==
        "all 160 training samples have the label 3: there is nothing to learn from them\n");
  dataset.class_names = {"a", "b", "c", "cat"};
  CHECK(equal_labels(tiny, dataset).find("the label 3 ('cat'):") != std::string::npos);
  labels[159] = 2;
  CHECK(equal_labels(tiny, dataset).empty());

  data::Dataset several = digits_and_means();
  CHECK(equal_labels(two_outputs(), several).empty());
  for (std::int64_t i = 0; i < several.train.samples(); ++i) {
    float* const label = several.train.labels.as<float>() + 3 * i;
    label[1] = 0.25F;
    label[2] = 0.5F;
  }
  CHECK(equal_labels(two_outputs(), several)
            .find("output 'mean': all 160 training samples have the label of the first: ") == 0);
  for (std::int64_t i = 0; i < several.train.samples(); ++i) {
    several.train.labels.as<float>()[3 * i] = 7;
  }
  CHECK(equal_labels(two_outputs(), several)
            .find("output 'digit': all 160 training samples have the label 7: ") == 0);
}

}  // namespace halfstep::train

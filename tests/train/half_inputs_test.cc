// The warning about samples with values that float16 does not hold, wherever the model rounds them
// to it.

#include <doctest/doctest.h>

#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "config/warning_codes.h"
#include "train/fixture.h"

namespace halfstep::train {
namespace {

/// The message of W122, "" without it.
std::string overflow_of(const TinyRun& tiny, const data::Dataset& dataset) {
  const Session session(tiny.spec(), dataset, cpu());
  std::string text;
  for (const config::Warning& warning : session.warnings()) {
    if (warning.code == config::k_infinite_input) text += warning.message + "\n";
  }
  return text;
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

}  // namespace halfstep::train

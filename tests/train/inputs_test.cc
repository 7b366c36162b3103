// Models of several inputs, whose samples are cut out of one tensor.

#include <doctest/doctest.h>

#include <cstring>
#include <ostream>
#include <string>

#include "train/fixture.h"
#include "train/thread_ranks.h"

namespace halfstep::train {

TEST_CASE("inputs: two that a layer joins train as one input, to the last bit") {
  const data::Dataset flat = flat_digits();
  for (const std::string precision : {"{policy: float32}",
                                      "{policy: mixed_bfloat16}",
                                      "{policy: mixed_float16}",
                                      "{rewrite: auto, target: bfloat16}"}) {
    for (const char* training :
         {"{epochs: 2, batch_size: 24}", "{epochs: 2, batch_size: 24, accumulate_steps: 3}"}) {
      CAPTURE(precision);
      CAPTURE(training);
      TinyRun whole, halves = digit_halves();
      whole.precision = halves.precision = precision;
      whole.training = halves.training = training;
      const TrainResult expected = Run(whole.spec()).finish();
      const TrainResult got = Run(halves.spec(), {}, flat).finish();
      CHECK(got.init_hash == expected.init_hash);
      CHECK(got.final_hash == expected.final_hash);
      CHECK(got.test->metrics == expected.test->metrics);
    }
  }
}

TEST_CASE("inputs: a run that is stopped goes on from its checkpoint to the same weights") {
  const data::Dataset flat = flat_digits();
  const config::RunSpec spec = digit_halves().spec();
  const TrainResult whole = Run(spec, {}, flat).finish();
  const test::TemporaryDirectory directory;
  config::RunSpec half = spec;
  half.training.max_steps = 5;
  Run(half, in_directory(directory.path().string()), flat).finish();
  Run rest(spec, in_directory(directory.path().string()), flat);
  CHECK(rest.finish().final_hash == whole.final_hash);
}

TEST_CASE("inputs: samples of several are mixed and weighted as those of one") {
  TinyRun whole, halves = digit_halves();
  whole.data = halves.data = "{format: npz, path: x.npz, sample_weight: w, augment: {mixup: {}}}";
  data::Dataset flat = flat_digits(), square = flat_digits();
  square.sample_shape = digits().sample_shape;
  for (data::Dataset* dataset : {&flat, &square}) {
    for (data::Split* split : {&dataset->train, &dataset->test}) {
      if (dataset == &square) split->images.reshape({split->samples(), 28, 28, 1});
      split->weights = Tensor(DType::float32, {split->samples()});
      for (std::int64_t i = 0; i < split->samples(); ++i) {
        split->weights.as<float>()[i] = static_cast<float>(i % 5) / 2;
      }
    }
  }
  CHECK(Run(halves.spec(), {}, flat).finish().final_hash ==
        Run(whole.spec(), {}, square).finish().final_hash);
}

TEST_CASE("inputs: two ranks train as one process") {
  TinyRun halves = digit_halves();
  const std::size_t norm = halves.layers.find("    norm:");
  halves.layers.erase(norm, halves.layers.find('\n', norm) + 1 - norm);
  halves.layers.replace(halves.layers.find("from: norm"), 10, "from: hidden");
  const data::Dataset flat = flat_digits();
  const TrainResult one = Run(halves.spec(), {}, flat).finish();
  for (const TrainResult& result : train_ranks(halves.spec(), 2, flat)) {
    check_same_training(result, one, 1e-5);  // sums of 24 samples in float32
  }
}

}  // namespace halfstep::train

#pragma once
// Training runs of a few milliseconds, in this process.

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/temporary_directory.h"
#include "train/trainer.h"

namespace halfstep::train {

/// All of digits(), none of them for validation.
inline constexpr std::string_view k_unsplit_digits =
    "{name: synthetic_digits, train_samples: 160, test_samples: 60}";

/// The parts of a config that tests change; each is the text after its key.
struct TinyRun {
  std::string layers = R"(
    - {type: flatten}
    - {name: hidden, type: dense, units: 12, activation: relu}
    - {name: norm, type: batch_normalization}
    - {type: dropout, rate: 0.3}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
  /// The model up to `layers`, which are nodes and outputs where this ends with "nodes:".
  std::string model = "input: [28, 28, 1]\n  layers:";
  std::string data =
      "{name: synthetic_digits, train_samples: 160, test_samples: 60, validation_split: 0.2}";
  std::string precision = "{policy: float32}";
  std::string loss = "sparse_categorical_crossentropy";
  std::string optimizer = "{type: adam, learning_rate: 1e-3}";
  std::string training = "{epochs: 2, batch_size: 24}";

  config::RunSpec spec() const;
};

/// 160 digits to train on and 60 to test. With a validation split of 0.2 and batches of 24 an
/// epoch has five full batches and a tail.
const data::Dataset& digits();

/// The digits as floats, with one training sample (by default in the second batch of the first
/// epoch when nothing is shuffled) that is not a number.
data::Dataset digits_with_nan(std::int64_t sample = 30);

/// A run whose samples are sequences of masked length, with a class at each step, weights of
/// samples and of classes; and its data, the digits row by row. `masks`: the layers that mask
/// steps. The first rows of a digit, up to 24, are zeros.
TinyRun masked_rows(std::string_view masks = "    - {type: masking}\n");
/// Runs like that whose losses leave out steps by masks, labels, or both.
std::vector<TinyRun> masked_runs();
data::Dataset digit_rows();

/// A run on the halves of digits as two inputs, which a layer joins for the layers of TinyRun; and
/// its data, the values of a digit in one row.
TinyRun digit_halves();
data::Dataset flat_digits();

/// A run of two outputs, the class of a digit and the mean of its pixels and of its upper half,
/// with weights of samples; and its data.
TinyRun two_outputs();
data::Dataset digits_and_means();

/// One thread.
const backend::Backend& cpu();

/// Keeps everything it is told.
struct Record final : TrainObserver {
  std::vector<StepInfo> steps;
  std::vector<ScaleEvent> scales;
  std::vector<SkippedStep> skips;
  std::vector<EpochRecord> epochs;
  std::vector<std::string> checkpoints;

  void on_step(const StepInfo& info) override { steps.push_back(info); }
  void on_scale(const ScaleEvent& event) override { scales.push_back(event); }
  void on_skip(const SkippedStep& skip) override { skips.push_back(skip); }
  void on_epoch(const EpochRecord& epoch) override { epochs.push_back(epoch); }
  void on_checkpoint(const std::string& path) override { checkpoints.push_back(path); }
};

/// A run with all that belongs to it.
class Run {
 public:
  explicit Run(const config::RunSpec& spec,
               TrainOptions options = {},
               const data::Dataset& dataset = digits(),
               const backend::Backend& backend = cpu(),
               const std::set<std::string, std::less<>>& skipped_passes = {});

  Session& session() { return session_; }
  plan::State& state() { return session_.state(); }
  const plan::State& state() const { return session_.state(); }
  Trainer& trainer() { return trainer_; }
  const Record& record() const { return record_; }
  /// To the end, with the test evaluation and the hashes.
  TrainResult finish();

 private:
  Session session_;
  Record record_;
  Trainer trainer_;
};

/// The bytes of a variable.
std::string bytes_of(const plan::State& state, std::string_view variable);

/// Options of a run in `directory`, resumed from its newest checkpoint where there is one.
TrainOptions in_directory(const std::string& directory);

}  // namespace halfstep::train

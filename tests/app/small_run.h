#pragma once
// A training run of a few hundred milliseconds on generated digits.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/process.h"

namespace halfstep::test {

using Json = nlohmann::ordered_json;

/// The parts of the config that tests change; each is the text after its key.
struct SmallRun {
  std::string data =
      "{name: synthetic_digits, train_samples: 512, test_samples: 128, validation_split: 0.25}";
  std::string layers = R"(
    - {type: dense, units: 16, activation: relu, name: hidden}
    - {type: dropout, rate: 0.25}
    - {type: dense, units: 10, name: logits}
    - {type: softmax, dtype: float32}
)";
  std::string precision = "{policy: float32}";
  std::string optimizer = "{type: adam, learning_rate: 1e-3}";
  std::string training = "{epochs: 2, batch_size: 64}";

  std::string text() const;
};

/// Long enough to be hit in the middle by a signal, with few writes that wait for the disk.
SmallRun long_run();

/// Waits until the run has done some steps; false when it ends before.
bool wait_for_steps(Process& process,
                    const TemporaryDirectory& directory,
                    const std::string& run_dir);

/// Writes run.yaml into `directory`; returns its path.
std::string write_config(const TemporaryDirectory& directory, const SmallRun& run = {});

/// A folder with run.yaml.
struct RunFolder {
  TemporaryDirectory directory;

  explicit RunFolder(const SmallRun& run = {}) { write_config(directory, run); }
  /// `explain run.yaml` and more arguments: its output, or its messages where it fails.
  std::string explain(std::vector<std::string> words, int exit_code = 0) const;
};

/// `train run.yaml --run-dir <name> --threads 1` and more arguments.
std::vector<std::string> train_arguments(const std::string& run_dir,
                                         const std::vector<std::string>& more = {});
Finished train(const TemporaryDirectory& directory,
               const std::string& run_dir,
               const std::vector<std::string>& more = {});

/// The report of a run, null when there is none.
Json report_of(const TemporaryDirectory& directory, const std::string& run_dir);

/// `reproducibility.final_hash` of a run's report.
std::string final_hash(const TemporaryDirectory& directory, const std::string& run_dir);

}  // namespace halfstep::test

#include "app/small_run.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <thread>

namespace halfstep::test {

std::string SmallRun::text() const {
  return "version: 1\nname: small\nseed: 7\ndata: " + data +
         "\nmodel:\n  input: [784]\n  layers:" + layers + "precision: " + precision +
         "\nloss: sparse_categorical_crossentropy\noptimizer: " + optimizer +
         "\ntraining: " + training + "\n";
}

SmallRun long_run() {
  SmallRun run;
  run.data = "{name: synthetic_digits, train_samples: 8192, test_samples: 128}";
  run.training = "{epochs: 4, batch_size: 8, checkpoint_every: {steps: 900}}";
  return run;
}

bool wait_for_steps(Process& process,
                    const TemporaryDirectory& directory,
                    const std::string& run_dir) {
  const std::filesystem::path metrics = directory.path() / run_dir / "metrics.jsonl";
  std::error_code error;
  while (process.running()) {
    if (std::filesystem::exists(metrics, error) && std::filesystem::file_size(metrics, error) > 0) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

std::string write_config(const TemporaryDirectory& directory, const SmallRun& run) {
  write_text(directory.file("run.yaml"), run.text());
  return directory.file("run.yaml");
}

std::string RunFolder::explain(std::vector<std::string> words, int exit_code) const {
  words.insert(words.begin(), {"explain", "run.yaml"});
  const Finished end = halfstep(words, directory.path());
  CAPTURE(end.err);
  CHECK(end.exit_code == exit_code);
  return exit_code == 0 ? end.out : end.err;
}

std::vector<std::string> train_arguments(const std::string& run_dir,
                                         const std::vector<std::string>& more) {
  std::vector<std::string> words{"train", "run.yaml", "--run-dir", run_dir, "--threads", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Finished train(const TemporaryDirectory& directory,
               const std::string& run_dir,
               const std::vector<std::string>& more) {
  return halfstep(train_arguments(run_dir, more), directory.path());
}

Json report_of(const TemporaryDirectory& directory, const std::string& run_dir) {
  const std::filesystem::path path = directory.path() / run_dir / "report.json";
  return std::filesystem::exists(path) ? Json::parse(read_text(path)) : Json();
}

std::string final_hash(const TemporaryDirectory& directory, const std::string& run_dir) {
  const Json report = report_of(directory, run_dir);
  return report.is_null() ? "" : report.at("reproducibility").at("final_hash").get<std::string>();
}

}  // namespace halfstep::test

#pragma once
// Progress on stderr: a bar on a terminal, plain lines elsewhere.

#include <chrono>
#include <string>

#include "train/observer.h"

namespace halfstep::app {

enum class ProgressStyle { bar, lines, none };

/// What `--progress` and the terminal say.
ProgressStyle progress_style(const std::string& word, bool quiet);

class ProgressDisplay final : public train::TrainObserver {
 public:
  ProgressDisplay(ProgressStyle style, std::int64_t epochs) : style_(style), epochs_(epochs) {}

  void on_step(const train::StepInfo& info) override;
  void on_scale(const train::ScaleEvent& event) override;
  void on_skip(const train::SkippedStep& skip) override;
  void on_epoch(const train::EpochRecord& record) override;

 private:
  using Clock = std::chrono::steady_clock;

  ProgressStyle style_;
  std::int64_t epochs_;  ///< that the run is to have
  Clock::time_point shown_{};
  std::int64_t told_ = 0;  ///< skips and falls told of so far
};

}  // namespace halfstep::app

#pragma once
// Progress on stderr: a bar on a terminal, plain lines elsewhere.

#include <chrono>
#include <vector>

#include "pace.h"
#include "run_options.h"
#include "train/observer.h"

namespace halfstep::app {

enum class ProgressStyle { bar, lines, none };

/// The style of progress; `every` is the shortest time between two lines.
struct ProgressOptions {
  ProgressStyle style = ProgressStyle::lines;
  std::chrono::duration<double> every{30};
};

/// The options from --progress, --progress-every, --quiet and the terminal.
ProgressOptions progress_options(const RunOptions& options);

/// A line of progress that stays, as that of an epoch. On a terminal it has the fields that fit its
/// width; logs and redirected output have all.
void show_line(std::vector<ProgressField> fields);

/// Decides when progress is redrawn: about ten times a second on a terminal, elsewhere once per
/// interval.
class ProgressTimer {
 public:
  explicit ProgressTimer(const ProgressOptions& options);

  bool due() const { return ProgressClock::now() - shown_ >= interval_; }
  void shown() { shown_ = ProgressClock::now(); }

 private:
  std::chrono::duration<double> interval_;
  ProgressClock::time_point shown_;
};

class ProgressDisplay final : public train::TrainObserver {
 public:
  ProgressDisplay(const ProgressOptions& options, std::int64_t epochs)
      : style_(options.style), timer_(options), epochs_(epochs) {}

  void on_step(const train::StepInfo& info) override;
  void on_scale(const train::ScaleEvent& event) override;
  void on_skip(const train::SkippedStep& skip) override;
  void on_epoch(const train::EpochRecord& record) override;

 private:
  /// Samples and seconds of steps.
  struct Work {
    double samples = 0;
    double seconds = 0;
    double rate() const { return seconds > 0 ? samples / seconds : 0; }
  };

  ProgressStyle style_;
  ProgressTimer timer_;
  std::int64_t epochs_;  ///< in the whole run
  Pace pace_;
  Work recent_;  ///< with exponentially decaying weights
  Work epoch_;
  std::int64_t reported_ = 0;  ///< skips and decreases reported so far
};

}  // namespace halfstep::app

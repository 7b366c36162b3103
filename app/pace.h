#pragma once
// How fast work goes on and how long the rest of it takes, for progress displays.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halfstep::app {

using ProgressClock = std::chrono::steady_clock;

/// Time behind and time left of work that is counted in equal units. The units done before the
/// first update (the first step of a process prepares kernels) are left out of the estimate.
class Pace {
 public:
  void update(std::int64_t done, std::int64_t total);

  double elapsed_seconds() const;
  /// Nothing before the second unit, and when no unit is left.
  std::optional<double> seconds_left() const;

 private:
  ProgressClock::time_point start_ = ProgressClock::now();
  ProgressClock::time_point first_update_{};
  ProgressClock::time_point last_update_{};
  std::int64_t first_done_ = -1;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
};

/// "0:42", "3:05", "1:02:03", "2 d 01:02:03".
std::string duration_text(double seconds);

/// A part of a line of progress. `weight` says how gladly it is left out where the line is too
/// long; 0 is never left out.
struct ProgressField {
  std::string text;
  int weight = 0;
};

/// The fields with two spaces between, without empty ones; the heaviest are left out until `width`
/// characters are enough.
std::string fitted_line(std::vector<ProgressField> fields, std::size_t width);

}  // namespace halfstep::app

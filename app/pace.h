#pragma once
// Rate of progress and estimated remaining time, for progress displays.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halfstep::app {

using ProgressClock = std::chrono::steady_clock;

/// Elapsed and remaining time of work counted in equal units. Units before the first update (the
/// first step of a process prepares kernels) are excluded from the estimate.
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

/// A field of a progress line. Fields with a larger `weight` are dropped first when the line is too
/// long; weight 0 is never dropped.
struct ProgressField {
  std::string text;
  int weight = 0;
};

/// The non-empty fields separated by two spaces; fields with the largest weights are dropped until
/// the line fits in `width` characters.
std::string fitted_line(std::vector<ProgressField> fields, std::size_t width);

}  // namespace halfstep::app

#pragma once
// Charts of a page: a figure embeds its numbers as JSON, from which page.js draws it.

#include <optional>
#include <string>
#include <vector>

#include "report/history.h"

namespace halfstep::report::page {

/// A line over x. `x`, `y`, `low` and `high` are arrays of one length; null leaves a gap.
struct Series {
  std::string name;
  int color = 0;  ///< index in the page's palette; equal numbers have equal colors everywhere
  Json x = Json::array();
  Json y = Json::array();
  Json low = nullptr, high = nullptr;  ///< a band around the line, if not null
  bool stepped = false;                ///< a value holds until the next x
  bool filled = false;                 ///< down to zero
  bool points = false;                 ///< few values, each drawn as a dot
};

/// A marked point with a text.
struct Mark {
  double x = 0, y = 0;
  std::string text;
};

struct LineChart {
  std::string id;  ///< of the canvas; unique within the page
  std::string title;
  std::string x_title, y_title;
  std::vector<Series> series;
  bool powers_of_two = false;  ///< a logarithmic y axis with ticks at powers of two
  std::string marks_name = {};
  std::vector<Mark> marks = {};
};

/// An interval, drawn as a line, and a value in it, drawn as a point. Each may be absent (null).
struct Range {
  std::string name;
  int color = 0;
  Json value = nullptr, low = nullptr, high = nullptr;
};

/// Intervals below each other: a forest plot, or bars from zero.
struct RangeChart {
  std::string id, title, x_title;
  std::vector<Range> ranges;
  std::optional<double> reference = std::nullopt;  ///< a line across all intervals
  std::optional<double> margin = std::nullopt;     ///< a band around the reference
  bool powers_of_two = false;
};

/// The chart as a figure; "" when it is empty.
std::string figure(const LineChart& chart);
std::string figure(const RangeChart& chart);

/// The value of an estimate and the ends of its interval, times `unit`.
Range range_of(const std::string& name,
               int color,
               double value,
               const std::optional<Interval>& interval,
               double unit = 1);

/// Counts of equal bins of step times as a line over their edges; no points without counts.
Series histogram_series(const StepTime& step_time, const std::string& name, int color);

}  // namespace halfstep::report::page

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace halfstep::report {

/// A line of a chart; values that are not known leave a gap.
struct Series {
  std::string name;
  std::vector<std::optional<double>> values;  ///< at x = 1, 2, ...
};

struct Chart {
  std::string title;
  std::vector<Series> series;
  bool logarithmic = false;  ///< base 2, for values above 0
};

/// The chart as an SVG element for an HTML page: axes with ticks, a line with points and their
/// values as tooltips per series, a legend. "" when there is nothing to draw.
std::string svg(const Chart& chart);

}  // namespace halfstep::report

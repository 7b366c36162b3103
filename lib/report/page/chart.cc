#include "report/page/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/export/xml_text.h"
#include "report/page/markup.h"

namespace halfstep::report::page {
namespace {

std::string figure(const std::string& id, const std::string& title, int height, const Json& spec) {
  return fmt::format(
      "<figure>\n<figcaption>{1}</figcaption>\n"
      "<div class=\"canvas\" style=\"height: {2}px\"><canvas id=\"{0}\" role=\"img\" "
      "aria-label=\"{1}\"></canvas></div>\n"
      "<script type=\"application/json\">{3}</script>\n</figure>\n",
      xml_text(id),
      xml_text(title),
      height,
      script_json(spec));
}

bool has_number(const Json& values) { return std::ranges::any_of(values, &Json::is_number); }

}  // namespace

std::string figure(const LineChart& chart) {
  constexpr int k_height = 300;
  Json spec{{"kind", "lines"},
            {"x", chart.x_title},
            {"y", chart.y_title},
            {"powers_of_two", chart.powers_of_two},
            {"series", Json::array()},
            {"marks_name", chart.marks_name},
            {"marks", Json::array()}};
  for (const Series& series : chart.series) {
    if (!has_number(series.y)) continue;
    spec["series"].push_back({{"name", series.name},
                              {"color", series.color},
                              {"x", series.x},
                              {"y", series.y},
                              {"low", series.low},
                              {"high", series.high},
                              {"stepped", series.stepped},
                              {"filled", series.filled},
                              {"points", series.points}});
  }
  for (const Mark& mark : chart.marks) {
    spec["marks"].push_back({{"x", mark.x}, {"y", mark.y}, {"text", mark.text}});
  }
  if (spec["series"].empty() && spec["marks"].empty()) return "";
  return figure(chart.id, chart.title, k_height, spec);
}

std::string figure(const RangeChart& chart) {
  constexpr int k_axis = 70, k_row = 34;
  Json spec{{"kind", "ranges"},
            {"x", chart.x_title},
            {"reference", number(chart.reference)},
            {"margin", number(chart.margin)},
            {"powers_of_two", chart.powers_of_two},
            {"ranges", Json::array()}};
  for (const Range& range : chart.ranges) {
    if (!range.value.is_number() && !range.low.is_number()) continue;
    spec["ranges"].push_back({{"name", range.name},
                              {"color", range.color},
                              {"value", range.value},
                              {"low", range.low},
                              {"high", range.high}});
  }
  if (spec["ranges"].empty()) return "";
  const int rows = static_cast<int>(spec["ranges"].size());
  return figure(chart.id, chart.title, k_axis + k_row * rows, spec);
}

Range range_of(const std::string& name,
               int color,
               double value,
               const std::optional<Interval>& interval,
               double unit) {
  Range range{name, color, finite(value * unit)};
  if (interval) {
    range.low = finite(interval->low * unit);
    range.high = finite(interval->high * unit);
  }
  return range;
}

Series histogram_series(const StepTime& step_time, const std::string& name, int color) {
  Series series{name, color};
  series.stepped = true;
  series.filled = true;
  const StepTimeHistogram* histogram = step_time.bins();
  if (histogram == nullptr || !histogram->from || !histogram->to) return series;
  const std::vector<std::int64_t>& counts = histogram->counts;
  const double from = *histogram->from;
  const double width =
      (*histogram->to - from) / static_cast<double>(std::max<std::size_t>(1, counts.size()));
  if (!(width > 0)) return series;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    series.x.push_back(from + width * static_cast<double>(i));
    series.y.push_back(counts[i]);
  }
  series.x.push_back(*histogram->to);
  series.y.push_back(0);
  return series;
}

}  // namespace halfstep::report::page

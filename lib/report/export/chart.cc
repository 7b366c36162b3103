#include "report/export/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/export/xml_text.h"

namespace halfstep::report {
namespace {

constexpr double k_width = 560, k_height = 260;
constexpr double k_left = 64, k_right = 16, k_top = 28, k_bottom = 32;
constexpr double k_plot_width = k_width - k_left - k_right;
constexpr double k_plot_height = k_height - k_top - k_bottom;
/// Told apart by people who do not see all colours (Okabe and Ito's palette).
constexpr std::array k_colors{
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"};

/// From values to pixels.
struct Scale {
  double low = 0, high = 1;
  std::size_t count = 1;

  double x(std::size_t index) const {
    if (count < 2) return k_left + k_plot_width / 2;
    return k_left + k_plot_width * static_cast<double>(index) / static_cast<double>(count - 1);
  }
  double y(double value) const {
    return k_top + k_plot_height * (1 - (value - low) / (high - low));
  }
};

std::optional<double> drawn(const std::optional<double>& value, bool logarithmic) {
  if (!value || !logarithmic) return value;
  return *value > 0 ? std::optional(std::log2(*value)) : std::nullopt;
}

/// The range of all values with some room; nothing without any.
std::optional<Scale> scale_of(const Chart& chart) {
  std::optional<Scale> scale;
  std::size_t count = 0;
  for (const Series& series : chart.series) {
    count = std::max(count, series.values.size());
    for (const std::optional<double>& value : series.values) {
      const std::optional<double> v = drawn(value, chart.logarithmic);
      if (!v) continue;
      if (!scale) scale = Scale{*v, *v, 1};
      scale->low = std::min(scale->low, *v);
      scale->high = std::max(scale->high, *v);
    }
  }
  if (!scale) return scale;
  const double spread = scale->high - scale->low;
  const double room = spread > 0 ? spread * 0.05 : std::max(0.5, std::abs(scale->high) * 0.05);
  scale->low -= room;
  scale->high += room;
  scale->count = count;
  return scale;
}

/// A round step of 1, 2 or 5 times a power of ten that fits about four times.
double round_step(double range) {
  const double rough = range / 4;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                     x,
                     y,
                     anchor,
                     xml_text(text));
}

std::string grid(const Chart& chart, const Scale& scale) {
  std::string text;
  const double step = chart.logarithmic ? std::max(1.0, round_step(scale.high - scale.low))
                                        : round_step(scale.high - scale.low);
  for (double tick = std::ceil(scale.low / step) * step; tick <= scale.high; tick += step) {
    const double value = std::abs(tick) < step / 1e6 ? 0 : tick;
    const double y = scale.y(value);
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{2:.1f}\" x2=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n",
        k_left,
        k_width - k_right,
        y);
    text += label(k_left - 6,
                  y + 4,
                  "end",
                  fmt::format("{:.4g}", chart.logarithmic ? std::exp2(value) : value));
  }
  const std::size_t every = std::max<std::size_t>(1, (scale.count + 9) / 10);
  for (std::size_t i = 0; i < scale.count; i += every) {
    text += label(scale.x(i), k_height - k_bottom + 16, "middle", std::to_string(i + 1));
  }
  return text + label(k_width - k_right, k_height - 2, "end", "epoch");
}

std::string line_of(const Series& series, const char* color, bool logarithmic, const Scale& scale) {
  std::string path, points;
  bool pen_down = false;
  for (std::size_t i = 0; i < series.values.size(); ++i) {
    const std::optional<double> v = drawn(series.values[i], logarithmic);
    if (!v) {
      pen_down = false;
      continue;
    }
    const double x = scale.x(i), y = scale.y(*v);
    path += fmt::format("{}{:.1f} {:.1f} ", pen_down ? "L" : "M", x, y);
    pen_down = true;
    points += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\" fill=\"{}\"><title>{}, epoch {}: "
        "{:.6g}</title></circle>\n",
        x,
        y,
        color,
        xml_text(series.name),
        i + 1,
        *series.values[i]);
  }
  return fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\"/>\n{}", path, color, points);
}

}  // namespace

std::string svg(const Chart& chart) {
  const std::optional<Scale> scale = scale_of(chart);
  if (!scale) return "";
  const double legend_height = 18.0 * static_cast<double>((chart.series.size() + 2) / 3);
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">\n",
      k_width,
      k_height + legend_height,
      xml_text(chart.title));
  text += label(k_left, 16, "start", chart.title) + grid(chart, *scale);
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const char* color = k_colors[i % k_colors.size()];
    text += line_of(chart.series[i], color, chart.logarithmic, *scale);
    const double x = k_left + k_plot_width / 3 * static_cast<double>(i % 3);
    const double y = k_height + 14 + 18.0 * static_cast<double>(i / 3);
    text += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"3\" fill=\"{}\"/>\n",
                        x,
                        y - 5,
                        color);
    text += label(x + 16, y, "start", chart.series[i].name);
  }
  return text + "</svg>\n";
}

}  // namespace halfstep::report

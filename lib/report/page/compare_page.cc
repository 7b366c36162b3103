// The page of a comparison.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "report/compare_table.h"
#include "report/export/facts.h"
#include "report/history_columns.h"
#include "report/page/chart.h"
#include "report/page/markup.h"
#include "report/page/pages.h"
#include "report/page/parts.h"

namespace halfstep::report::page {
namespace {

/// Values over x of one run.
struct Curve {
  Json x, y;
  std::int64_t interval = 1;  ///< of x
};

/// The mean of a policy's runs and the range of the seeds. Runs of different length have points at
/// different steps; those of the coarsest one are among those of all others.
Series over_seeds(const std::vector<Curve>& curves, const std::string& name, int color) {
  Series series{name, color};
  const auto coarsest =
      std::max_element(curves.begin(), curves.end(), [](const Curve& a, const Curve& b) {
        return std::pair(a.interval, a.x.size()) < std::pair(b.interval, b.x.size());
      });
  if (coarsest == curves.end()) return series;
  std::map<std::int64_t, std::vector<double>> values;
  for (const Curve& curve : curves) {
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (curve.y[i].is_number())
        values[curve.x[i].get<std::int64_t>()].push_back(curve.y[i].get<double>());
    }
  }
  if (curves.size() > 1) series.low = series.high = Json::array();
  for (const Json& x : coarsest->x) {
    const std::vector<double>& all = values[x.get<std::int64_t>()];
    double sum = 0;
    for (const double value : all) sum += value;
    series.x.push_back(x);
    series.y.push_back(all.empty() ? Json(nullptr) : Json(sum / static_cast<double>(all.size())));
    if (series.low.is_null()) continue;
    series.low.push_back(all.empty() ? Json(nullptr)
                                     : Json(*std::min_element(all.begin(), all.end())));
    series.high.push_back(all.empty() ? Json(nullptr)
                                      : Json(*std::max_element(all.begin(), all.end())));
  }
  return series;
}

/// A line per policy; `curve_of` takes a run's curve, or nothing.
template <class CurveOf>
LineChart policy_lines(const Json& report, LineChart chart, CurveOf curve_of) {
  int color = 0;
  for (const Json& policy : report.at("policies")) {
    std::vector<Curve> curves;
    for (const Json& run : report.at("runs")) {
      if (run.at("policy") != policy.at("policy")) continue;
      if (const std::optional<Curve> curve = curve_of(run)) curves.push_back(*curve);
    }
    chart.series.push_back(over_seeds(curves, word(policy.at("policy")), color++));
  }
  return chart;
}

/// A column of the step histories, a line per policy; policies without any value have none.
std::string step_chart(const Json& report, LineChart chart, const char* column) {
  return figure(
      policy_lines(report, std::move(chart), [&](const Json& run) -> std::optional<Curve> {
        if (!run.contains("step_history")) return std::nullopt;
        const Json& steps = run.at("step_history");
        return Curve{steps.at("step"), steps.at(column), steps.at("interval")};
      }));
}

/// A chart per metric of any run; the training loss has its own.
std::string epoch_charts(const Json& report) {
  std::vector<std::string> names;
  bool by_step = false;
  for (const Json& run : report.at("runs")) {
    by_step =
        by_step || (run.contains("step_history") && !run.at("step_history").at("step").empty());
    for (const std::string& name : metric_columns(run.at("history"))) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  std::string text;
  for (const std::string& name : names) {
    if (name == "loss" && by_step) continue;
    LineChart chart = policy_lines(report,
                                   {"metric-" + name, name, "epoch", name, {}},
                                   [&](const Json& run) -> std::optional<Curve> {
                                     const Json& history = run.at("history");
                                     if (!history.contains(name)) return std::nullopt;
                                     return Curve{history.at("epoch"), history.at(name)};
                                   });
    for (Series& series : chart.series) series.points = true;
    text += figure(chart);
  }
  return text;
}

/// The value of an estimate and the ends of its interval.
Range range_of(const std::string& name, int color, const Json& value, const Json& interval) {
  Range range{name, color, value};
  if (interval.is_array()) {
    range.low = interval[0];
    range.high = interval[1];
  }
  return range;
}

std::string forest_plots(const Json& report) {
  const std::string metric = report.at("metric"), baseline = report.at("baseline");
  RangeChart time{"step-time", "Step time: median and its 95 % interval", "ms", {}};
  RangeChart speed{"speedup", "Speed-up over " + baseline + ": 95 % interval", "times as fast", {}};
  speed.reference = 1;
  const bool points = !metric.ends_with("loss");
  const double unit = points ? 100 : 1;
  RangeChart delta{"accuracy-delta",
                   fmt::format("{} minus that of {}: 95 % interval", metric, baseline),
                   fmt::format("{}; the band is the margin that does not matter",
                               points ? "percentage points" : metric),
                   {}};
  delta.reference = 0;
  if (report.at("margin").is_number()) delta.margin = report.at("margin").get<double>() * unit;
  const auto scaled = [&](const Json& value) {
    return value.is_number() ? Json(value.get<double>() * unit) : Json(nullptr);
  };
  int color = 0;
  for (const Json& policy : report.at("policies")) {
    const std::string name = word(policy.at("policy"));
    const Json& step = policy.at("step_time");
    if (step.is_object()) {
      time.ranges.push_back(range_of(name, color, step.at("median"), step.at("median_ci95")));
    }
    const Json& ratio = policy.at("speedup");
    if (ratio.is_object()) {
      speed.ranges.push_back(range_of(name, color, ratio.at("ratio_of_medians"), ratio.at("ci95")));
    }
    const Json& difference = policy.at("accuracy_delta");
    if (difference.is_object()) {
      Range range = range_of(name, color, difference.at("mean"), difference.at("ci95"));
      delta.ranges.push_back(
          {name, color, scaled(range.value), scaled(range.low), scaled(range.high)});
    }
    ++color;
  }
  return figure(speed) + figure(delta) + figure(time);
}

std::string gates(const Json& report) {
  Rows rows{{"fails if", "outcome"}};
  for (const Json& gate : report.at("gates")) {
    rows.push_back({gate.at("expression").get<std::string>(), gate_outcome(gate)});
  }
  return section("Gates", table(rows));
}

std::string runs(const Json& report) {
  std::string text;
  for (const Json& run : report.at("runs")) {
    const std::string name = fmt::format("{}, seed {}: {}, {} steps, {} skipped",
                                         word(run.at("policy")),
                                         word(run.at("seed")),
                                         word(run.at("status")),
                                         word(run.at("steps").at("applied")),
                                         word(run.at("skipped_steps")));
    const std::string message = run.at("message");
    text += details(name, paragraph(message) + table(history_rows(run.at("history"))));
  }
  return section("Runs", text);
}

std::string op_maps(const Json& report) {
  std::string text;
  for (const Json& policy : report.at("policies")) {
    const Json& precision = policy.at("precision");
    if (!precision.is_object() || !precision.contains("ops")) continue;
    text += details(word(policy.at("policy")), op_map(precision.at("ops")));
  }
  return section("Where each dtype is used", text);
}

}  // namespace

std::string compare_body(const Json& report) {
  std::string text = paragraph(compare_advice(report), "advice");
  text += table(compare_rows(report)) + list(compare_legend(report));
  text += figures(forest_plots(report));
  text += section(
      "Curves",
      paragraph("A line is the mean over the seeds, its band the range of the seeds.", "weak") +
          figures(step_chart(report, {"loss", "Training loss", "step", "loss", {}}, "loss") +
                  epoch_charts(report) +
                  step_chart(report,
                             {"loss-scale", "Loss scale", "step", "loss scale", {}, true},
                             "loss_scale")));
  text += gates(report);
  text += section("Settings that differ", table(setting_rows(report)));
  text += section("Summary", facts(main_facts(report)));
  text += runs(report) + op_maps(report);
  return text + notes(report) + origin(report);
}

}  // namespace halfstep::report::page

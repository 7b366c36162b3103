#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/ranges.h"
#include "report/export/summary.h"
#include "report/page/chart.h"
#include "report/page/markup.h"
#include "report/page/pages.h"
#include "report/tables.h"

namespace halfstep::report::page {
namespace {

/// Values over x of one run.
struct Curve {
  std::vector<std::int64_t> x;
  Column y;
  std::int64_t interval = 1;  ///< of x
};

/// The mean of a policy's runs and the range over seeds. Runs of different length have points at
/// different steps; those of the coarsest one are a subset of all others.
Series over_seeds(const std::vector<Curve>& curves, const std::string& name, int color) {
  Series series{name, color};
  const auto coarsest = std::ranges::max_element(curves, [](const Curve& a, const Curve& b) {
    return std::pair(a.interval, a.x.size()) < std::pair(b.interval, b.x.size());
  });
  if (coarsest == curves.end()) return series;
  std::map<std::int64_t, std::vector<double>> values;
  for (const Curve& curve : curves) {
    for (std::size_t i = 0; i < curve.x.size(); ++i) {
      if (curve.y[i]) values[curve.x[i]].push_back(*curve.y[i]);
    }
  }
  if (curves.size() > 1) series.low = series.high = Json::array();
  for (const std::int64_t x : coarsest->x) {
    const std::vector<double>& all = values[x];
    double sum = 0;
    for (const double value : all) sum += value;
    series.x.push_back(x);
    series.y.push_back(all.empty() ? Json(nullptr) : Json(sum / static_cast<double>(all.size())));
    if (series.low.is_null()) continue;
    series.low.push_back(all.empty() ? Json(nullptr) : Json(*std::ranges::min_element(all)));
    series.high.push_back(all.empty() ? Json(nullptr) : Json(*std::ranges::max_element(all)));
  }
  return series;
}

/// A line per policy; `curve_of` takes a run's curve, or nothing.
template <class CurveOf>
LineChart policy_lines(const CompareReport& report, LineChart chart, CurveOf curve_of) {
  int color = 0;
  for (const PolicyBlock& policy : report.policies) {
    std::vector<Curve> curves;
    for (const ComparedRunBlock& run : report.runs) {
      if (run.policy != policy.policy) continue;
      if (const std::optional<Curve> curve = curve_of(run)) curves.push_back(*curve);
    }
    chart.series.push_back(over_seeds(curves, policy.policy, color++));
  }
  return chart;
}

/// A column of the step histories, a line per policy; policies without any value have none.
std::string step_chart(const CompareReport& report, LineChart chart, Column StepColumns::*column) {
  return figure(policy_lines(
      report, std::move(chart), [&](const ComparedRunBlock& run) -> std::optional<Curve> {
        if (!run.step_history) return std::nullopt;
        const StepColumns& steps = *run.step_history;
        return Curve{steps.step, steps.*column, steps.interval};
      }));
}

/// A chart per metric of any run; the training loss has its own.
std::string epoch_charts(const CompareReport& report) {
  std::vector<std::string> names;
  bool by_step = false;
  for (const ComparedRunBlock& run : report.runs) {
    by_step = by_step || (run.step_history && !run.step_history->step.empty());
    for (const std::string& name : run.history.metric_names()) {
      if (!contains(names, name)) names.push_back(name);
    }
  }
  std::string text;
  for (const std::string& name : names) {
    if (name == "loss" && by_step) continue;
    LineChart chart = policy_lines(report,
                                   {"metric-" + name, name, "epoch", name, {}},
                                   [&](const ComparedRunBlock& run) -> std::optional<Curve> {
                                     const Column* column = run.history.metric(name);
                                     if (column == nullptr) return std::nullopt;
                                     return Curve{run.history.epoch, *column};
                                   });
    for (Series& series : chart.series) series.points = true;
    text += figure(chart);
  }
  return text;
}

std::string forest_plots(const CompareReport& report) {
  const std::string &metric = report.metric, &baseline = report.baseline;
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
  delta.margin = report.margin * unit;
  int color = 0;
  for (const PolicyBlock& policy : report.policies) {
    const std::string& name = policy.policy;
    if (const auto& step = policy.step_time) {
      time.ranges.push_back(
          range_of(name, color, step->median.value_or(std::nan("")), step->median_ci95));
    }
    if (const auto& ratio = policy.speedup) {
      speed.ranges.push_back(range_of(name, color, ratio->value, ratio->ci95));
    }
    if (const auto& difference = policy.accuracy_delta) {
      delta.ranges.push_back(range_of(name, color, difference->value, difference->ci95, unit));
    }
    ++color;
  }
  return figure(speed) + figure(delta) + figure(time);
}

std::string gates(const CompareReport& report) {
  Rows rows{{"fails if", "outcome"}};
  for (const GateBlock& gate : report.gates) {
    rows.push_back({gate.expression, gate_outcome(gate)});
  }
  return section("Gates", table(rows));
}

std::string runs(const CompareReport& report) {
  std::string text;
  for (const ComparedRunBlock& run : report.runs) {
    const std::string name = fmt::format("{}, seed {}: {}, {} steps, {} skipped",
                                         run.policy,
                                         run.seed,
                                         run.status,
                                         run.steps.applied,
                                         run.skipped_steps);
    text += details(name, paragraph(run.message) + table(history_rows(run.history)));
  }
  return section("Runs", text);
}

std::string op_maps(const CompareReport& report) {
  std::string text;
  for (const PolicyBlock& policy : report.policies) {
    if (policy.precision) text += details(policy.policy, op_map(policy.precision->ops));
  }
  return section("Where each dtype is used", text);
}

}  // namespace

std::string body(const CompareReport& report) {
  std::string text = paragraph(compare_advice(report), "advice");
  text += table(compare_rows(report)) + list(compare_legend(report));
  text += figures(forest_plots(report));
  text += section(
      "Curves",
      paragraph("A line is the mean over the seeds, its band the range of the seeds.", "weak") +
          figures(step_chart(
                      report, {"loss", "Training loss", "step", "loss", {}}, &StepColumns::loss) +
                  epoch_charts(report) +
                  step_chart(report,
                             {"loss-scale", "Loss scale", "step", "loss scale", {}, true},
                             &StepColumns::loss_scale)));
  text += gates(report);
  text += section("Settings that differ", table(setting_rows(report)));
  text += section("Summary", value_table(summarize(report)));
  text += runs(report) + op_maps(report);
  return text + notes(report.notes, report.warnings) +
         origin(run_summary(report.run.command, report.run.directory),
                report.context,
                report.config ? &*report.config : nullptr);
}

}  // namespace halfstep::report::page

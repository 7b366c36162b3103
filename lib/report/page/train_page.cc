#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/export/summary.h"
#include "report/export/timeline.h"
#include "report/page/chart.h"
#include "report/page/markup.h"
#include "report/page/pages.h"

namespace halfstep::report::page {
namespace {

/// Colours of the palette.
constexpr int k_training = 0, k_validation = 1;

Json json_of(const Column& column) { return write_json(field_of(column)); }

/// Batches drawn up to the end of each epoch.
Json epoch_ends(const History& history) {
  Json ends = Json::array();
  double steps = 0;
  for (const std::int64_t count : history.steps) {
    steps += static_cast<double>(count);
    ends.push_back(steps);
  }
  return ends;
}

/// The loss or a metric: of training by step, where the report has it so, and of validation.
std::string metric_chart(const TrainReport& report, const std::string& name) {
  const History& history = report.history;
  LineChart chart{"loss", "Loss", "step", name, {}};
  if (name != "loss") chart.id = "metric-" + name, chart.title = name;
  const Column* by_step = report.step_history ? report.step_history->metric(name) : nullptr;
  if (by_step != nullptr) {
    const std::int64_t interval = report.step_history->interval;
    const std::string mean =
        interval == 1 ? "training" : fmt::format("training, mean of {} steps", interval);
    chart.series.push_back({mean, k_training, report.step_history->step, json_of(*by_step)});
  } else if (const Column* training = history.metric(name)) {
    chart.series.push_back(
        {"training, mean of the epoch", k_training, epoch_ends(history), json_of(*training)});
    chart.series.back().points = true;
  }
  if (const Column* validation = history.metric("val_" + name)) {
    chart.series.push_back(
        {"validation, after each epoch", k_validation, epoch_ends(history), json_of(*validation)});
    chart.series.back().points = true;
  }
  return figure(chart);
}

std::string metric_charts(const TrainReport& report) {
  std::string text;
  for (const std::string& name : report.history.metric_names()) {
    if (!name.starts_with("val_")) text += metric_chart(report, name);
  }
  return text;
}

std::string learning_rate_chart(const TrainReport& report) {
  if (!report.step_history) return "";
  const StepColumns& steps = *report.step_history;
  const Column& rates = steps.learning_rate;
  const bool constant =
      std::ranges::all_of(rates, [&](const auto& rate) { return rate == rates.front(); });
  if (constant) return "";
  return figure(LineChart{"learning-rate",
                          "Learning rate",
                          "step",
                          "learning rate",
                          {{"learning rate", k_training, steps.step, json_of(rates)}}});
}

/// Every change at the first batch with the new scale. Where the list of changes is truncated, the
/// scale at the end of each interval of the step history.
Series scale_series(const TrainReport& report) {
  const LossScale& scale = report.loss_scale;
  Series series{"loss scale", k_training};
  series.stepped = true;
  if (scale.events_left_out.value_or(0) > 0 && report.step_history) {
    series.name = "loss scale at the end of each interval";
    series.x = report.step_history->step;
    series.y = json_of(report.step_history->loss_scale);
    return series;
  }
  series.x.push_back(0);
  series.y.push_back(scale.events.empty() ? number(scale.initial)
                                          : Json(scale.events.front().from));
  for (const train::ScaleEvent& event : scale.events) {
    series.x.push_back(batches_after(event.ordinal));
    series.y.push_back(event.to);
  }
  series.x.push_back(report.steps.ordinal);
  series.y.push_back(number(scale.final));
  return series;
}

/// A mark per skipped step, at the scale under which its gradients overflowed.
std::vector<Mark> skip_marks(const LossScale& scale) {
  std::vector<Mark> marks;
  const auto& events = scale.events;
  std::optional<double> at = events.empty() ? scale.initial : std::optional(events.front().from);
  std::size_t next = 0;
  for (const train::SkippedStep& skip : scale.skips) {
    while (next < events.size() && events[next].attempt < skip.attempt) at = events[next++].to;
    if (!at) continue;
    const std::int64_t step = batches_after(skip.ordinal);
    marks.push_back({static_cast<double>(step),
                     *at,
                     fmt::format("step {} {}: {}",
                                 step,
                                 skip.retried ? "tried again" : "skipped",
                                 first_nonfinite_text(skip))});
  }
  return marks;
}

std::string loss_scale_chart(const TrainReport& report) {
  if (report.loss_scale.mode == "none") return "";
  LineChart chart{"loss-scale", "Loss scale", "step", "loss scale", {scale_series(report)}, true};
  chart.marks_name = "skipped step";
  chart.marks = skip_marks(report.loss_scale);
  return figure(chart);
}

std::string cut_note(const LossScale& scale) {
  const std::int64_t events = scale.events_left_out.value_or(0);
  const std::int64_t skips = scale.skips_left_out.value_or(0);
  if (events == 0 && skips == 0) return "";
  return paragraph(
      fmt::format("The report lists the first and the last thousand of each: {} changes of the "
                  "loss scale and {} skipped steps in between are only counted.",
                  events,
                  skips),
      "weak");
}

std::string skips(const LossScale& scale) {
  constexpr std::size_t k_shown = 20;
  Rows rows{{"step", "attempt", "what happened", "first nonfinite tensor", "elements"}};
  for (const train::SkippedStep& skip : scale.skips) {
    const auto& first = skip.first_nonfinite;
    rows.push_back({std::to_string(batches_after(skip.ordinal)),
                    to_text(skip.attempt),
                    skip.retried ? "tried again" : "skipped",
                    first_nonfinite_text(skip),
                    first ? to_text(first->count) : "-"});
  }
  const std::string all = table(rows);
  const std::string body =
      rows.size() <= k_shown + 1 ? all : details(fmt::format("All {}", rows.size() - 1), all);
  return section("Skipped steps", body.empty() ? "" : body + cut_note(scale));
}

std::string step_time_chart(const StepTime& time) {
  LineChart chart{"step-times", "Step time", "ms", "steps", {histogram_series(time, "steps", 0)}};
  if (const StepTimeHistogram* bins = time.bins(); bins != nullptr && bins->above > 0) {
    const std::int64_t count = bins->above;
    chart.title += fmt::format(" ({} slower {} not shown)", count, count == 1 ? "step" : "steps");
  }
  return figure(chart);
}

std::string numerics(const TrainReport& report) {
  if (!report.numerics) return "";
  constexpr std::size_t k_max_windows = 40;
  Rows rows{{"tensor",
             "layer",
             "phase",
             "dtype",
             "largest",
             "headroom (bits)",
             "zero",
             "rounded to zero",
             "subnormal",
             "not finite",
             "safe loss scale"}};
  RangeChart chart{
      "safe-loss-scale", "Loss scales that are safe for each gradient", "loss scale", {}};
  chart.powers_of_two = true;
  chart.reference = report.loss_scale.final;
  for (const train::TensorNumerics& tensor : report.numerics->tensors) {
    const auto& window = tensor.safe_loss_scale;
    const bool known = window && std::isfinite(window->low) && std::isfinite(window->high);
    const bool any = known && window->low <= window->high;
    rows.push_back({tensor.name,
                    tensor.layer,
                    tensor.phase,
                    tensor.dtype,
                    to_text(tensor.absmax),
                    to_text(tensor.headroom_bits),
                    to_text(tensor.zero_frac),
                    to_text(tensor.zero_underflow_frac),
                    to_text(tensor.subnormal_frac),
                    to_text(tensor.nonfinite),
                    !known ? "-"
                    : any  ? to_text(window->low) + " to " + to_text(window->high)
                           : "none"});
    if (any && chart.ranges.size() < k_max_windows) {
      chart.ranges.push_back({tensor.name, 2, nullptr, window->low, window->high});
    }
  }
  const std::string said =
      fmt::format("{} sampled steps; the line across the chart is the final loss scale.",
                  report.numerics->sampled_steps.size());
  return section("What rounding to 16 bits loses",
                 paragraph(said, "weak") + figures(figure(chart)) +
                     details(fmt::format("All {} tensors", rows.size() - 1), table(rows)));
}

}  // namespace

std::string body(const TrainReport& report) {
  std::string text = value_table(summarize(report));
  text += figures(metric_charts(report) + loss_scale_chart(report) + learning_rate_chart(report) +
                  step_time_chart(report.step_time));
  text += section("Settings that changed", table(segment_rows(report)));
  text += section("Epochs", table(history_rows(report.history)));
  text += skips(report.loss_scale);
  text += section("Confusion matrix of the test split", classes(report.test_classes));
  for (const OutputClasses& of : report.test_outputs.value_or(std::vector<OutputClasses>())) {
    text += section("Confusion matrix of the test split, output " + of.output, classes(of.classes));
  }
  text += section("Where each dtype is used", op_map(report.precision.ops));
  text += numerics(report);
  return text + notes({}, report.warnings) +
         origin(
             run_summary(report.run.command, report.run.directory), report.context, &report.config);
}

}  // namespace halfstep::report::page

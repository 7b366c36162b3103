// The page of a training run.

#include <fmt/format.h>

#include <algorithm>

#include "report/export/facts.h"
#include "report/export/timeline.h"
#include "report/history_columns.h"
#include "report/page/chart.h"
#include "report/page/markup.h"
#include "report/page/pages.h"
#include "report/page/parts.h"

namespace halfstep::report::page {
namespace {

/// Colours of the palette.
constexpr int k_training = 0, k_validation = 1;

/// Batches drawn up to the end of each epoch.
Json epoch_ends(const Json& history) {
  Json ends = Json::array();
  double steps = 0;
  for (const Json& count : history.at("steps")) {
    steps += count.get<double>();
    ends.push_back(steps);
  }
  return ends;
}

std::string loss_chart(const Json& report) {
  const Json& history = report.at("history");
  LineChart chart{"loss", "Loss", "step", "loss", {}};
  if (report.contains("step_history")) {
    const Json& steps = report.at("step_history");
    const std::string mean = steps.at("interval") == 1 ? "training"
                                                       : fmt::format("training, mean of {} steps",
                                                                     word(steps.at("interval")));
    chart.series.push_back({mean, k_training, steps.at("step"), steps.at("loss")});
  } else {
    chart.series.push_back(
        {"training, mean of the epoch", k_training, epoch_ends(history), history.at("loss")});
  }
  if (history.contains("val_loss")) {
    chart.series.push_back({"validation, after each epoch",
                            k_validation,
                            epoch_ends(history),
                            history.at("val_loss")});
  }
  chart.series.back().points = chart.series.size() > 1 || !report.contains("step_history");
  return figure(chart);
}

/// A chart per metric but the loss.
std::string metric_charts(const Json& history) {
  std::string text;
  for (const std::string& name : metric_columns(history)) {
    if (name.starts_with("val_") || name == "loss") continue;
    LineChart chart{"metric-" + name, name, "epoch", name, {}};
    chart.series.push_back({"training", k_training, history.at("epoch"), history.at(name)});
    if (history.contains("val_" + name)) {
      chart.series.push_back(
          {"validation", k_validation, history.at("epoch"), history.at("val_" + name)});
    }
    for (Series& series : chart.series) series.points = true;
    text += figure(chart);
  }
  return text;
}

std::string learning_rate_chart(const Json& report) {
  if (!report.contains("step_history")) return "";
  const Json& steps = report.at("step_history");
  const Json& rates = steps.at("learning_rate");
  const bool constant = std::all_of(
      rates.begin(), rates.end(), [&](const Json& rate) { return rate == rates.front(); });
  if (constant) return "";
  return figure(LineChart{"learning-rate",
                          "Learning rate",
                          "step",
                          "learning rate",
                          {{"learning rate", k_training, steps.at("step"), rates}}});
}

std::int64_t left_out(const Json& scale, const char* member) {
  return scale.contains(member) ? scale.at(member).get<std::int64_t>() : 0;
}

/// Every change at the batch after which it holds. Where the list of changes is cut, the scale at
/// the end of each interval of the step history.
Series scale_series(const Json& report) {
  const Json& scale = report.at("loss_scale");
  const Json& events = scale.at("events");
  Series series{"loss scale", k_training};
  series.stepped = true;
  if (left_out(scale, "events_left_out") > 0 && report.contains("step_history")) {
    series.name = "loss scale at the end of each interval";
    series.x = report.at("step_history").at("step");
    series.y = report.at("step_history").at("loss_scale");
    return series;
  }
  series.x.push_back(0);
  series.y.push_back(events.empty() ? scale.at("initial") : events.front().at("from"));
  for (const Json& event : events) {
    series.x.push_back(batches_after(event.at("ordinal")));
    series.y.push_back(event.at("to"));
  }
  series.x.push_back(report.at("steps").at("ordinal"));
  series.y.push_back(scale.at("final"));
  return series;
}

std::string first_tensor(const Json& skip) {
  const Json& first = skip.at("first_nonfinite");
  if (first.is_null()) return "not traced";
  return fmt::format("{} first in {} ({}, {})",
                     word(first.at("kind")),
                     word(first.at("tensor")),
                     word(first.at("phase")),
                     word(first.at("dtype")));
}

/// A mark per step that was left out, at the scale under which its gradients overflowed.
std::vector<Mark> skip_marks(const Json& scale) {
  std::vector<Mark> marks;
  const Json& events = scale.at("events");
  Json at = events.empty() ? scale.at("initial") : events.front().at("from");
  std::size_t next = 0;
  for (const Json& skip : scale.at("skips")) {
    while (next < events.size() && events[next].at("attempt") < skip.at("attempt")) {
      at = events[next++].at("to");
    }
    if (!at.is_number()) continue;
    const std::int64_t step = batches_after(skip.at("ordinal"));
    marks.push_back({static_cast<double>(step),
                     at.get<double>(),
                     fmt::format("step {} {}: {}",
                                 step,
                                 skip.at("retried") == true ? "tried again" : "skipped",
                                 first_tensor(skip))});
  }
  return marks;
}

std::string loss_scale_chart(const Json& report) {
  const Json& scale = report.at("loss_scale");
  if (scale.at("mode") == "none") return "";
  LineChart chart{"loss-scale", "Loss scale", "step", "loss scale", {scale_series(report)}, true};
  chart.marks_name = "step left out";
  chart.marks = skip_marks(scale);
  return figure(chart);
}

std::string cut_note(const Json& scale) {
  const std::int64_t events = left_out(scale, "events_left_out");
  const std::int64_t skips = left_out(scale, "skips_left_out");
  if (events == 0 && skips == 0) return "";
  return paragraph(
      fmt::format(
          "The report lists the first and the last thousand of each: {} changes of the loss "
          "scale and {} skipped steps in between are only counted.",
          events,
          skips),
      "weak");
}

std::string skips(const Json& scale) {
  constexpr std::size_t k_shown = 20;
  Rows rows{{"step", "attempt", "what happened", "first tensor that was not finite", "elements"}};
  for (const Json& skip : scale.at("skips")) {
    const Json& first = skip.at("first_nonfinite");
    rows.push_back({std::to_string(batches_after(skip.at("ordinal"))),
                    word(skip.at("attempt")),
                    skip.at("retried") == true ? "tried again" : "skipped",
                    first_tensor(skip),
                    first.is_null() ? "-" : word(first.at("count"))});
  }
  const std::string all = table(rows);
  const std::string body =
      rows.size() <= k_shown + 1 ? all : details(fmt::format("All {}", rows.size() - 1), all);
  return section("Steps left out", body.empty() ? "" : body + cut_note(scale));
}

std::string step_time_chart(const Json& report) {
  const Json& time = report.at("step_time");
  LineChart chart{"step-times", "Step time", "ms", "steps", {histogram_series(time, "steps", 0)}};
  if (time.contains("histogram") && time.at("histogram").is_object() &&
      time.at("histogram").at("above") > 0) {
    const std::string count = word(time.at("histogram").at("above"));
    chart.title += fmt::format(" ({} slower {} not shown)", count, count == "1" ? "step" : "steps");
  }
  return figure(chart);
}

std::string numerics(const Json& report) {
  const Json& block = report.at("numerics");
  if (!block.is_object()) return "";
  constexpr std::size_t k_most_windows = 40;
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
  const Json& final = report.at("loss_scale").at("final");
  if (final.is_number()) chart.reference = final.get<double>();
  for (const Json& tensor : block.at("tensors")) {
    rows.push_back({});
    for (const char* member : {"name",
                               "layer",
                               "phase",
                               "dtype",
                               "absmax",
                               "headroom_bits",
                               "zero_frac",
                               "zero_underflow_frac",
                               "subnormal_frac",
                               "nonfinite"}) {
      rows.back().push_back(word(tensor.at(member)));
    }
    const Json& window = tensor.at("safe_loss_scale");
    const bool known = window.is_array() && window[0].is_number() && window[1].is_number();
    rows.back().push_back(!known                  ? "-"
                          : window[0] > window[1] ? "none"
                                                  : word(window[0]) + " to " + word(window[1]));
    if (known && window[0] <= window[1] && chart.ranges.size() < k_most_windows) {
      chart.ranges.push_back({word(tensor.at("name")), 2, nullptr, window[0], window[1]});
    }
  }
  const std::string said =
      fmt::format("{} sampled steps; the line across the chart is the final loss scale.",
                  block.at("sampled_steps").size());
  return section("What rounding to 16 bits loses",
                 paragraph(said, "weak") + figures(figure(chart)) +
                     details(fmt::format("All {} tensors", rows.size() - 1), table(rows)));
}

}  // namespace

std::string train_body(const Json& report) {
  const Json& history = report.at("history");
  std::string text = facts(main_facts(report));
  text += figures(loss_chart(report) + metric_charts(history) + loss_scale_chart(report) +
                  learning_rate_chart(report) + step_time_chart(report));
  text += section("Epochs", table(history_rows(history)));
  text += skips(report.at("loss_scale"));
  if (report.contains("test_classes")) {
    text += section("Confusion matrix of the test split", classes(report.at("test_classes")));
  }
  text += section("Where each dtype is used", op_map(report.at("precision").at("ops")));
  text += numerics(report);
  return text + notes(report) + origin(report);
}

}  // namespace halfstep::report::page

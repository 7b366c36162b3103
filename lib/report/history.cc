#include "report/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backend/cost_model.h"
#include "nn/metric.h"

namespace halfstep::report {
namespace {

template <class Block>
const Column* column_of(const Block& block, std::string_view name) {
  if (name == "loss") return &block.loss;
  const auto it =
      std::ranges::find_if(block.metrics, [&](const auto& metric) { return metric.first == name; });
  return it == block.metrics.end() ? nullptr : &it->second;
}

}  // namespace

double real(const std::optional<double>& value) { return value.value_or(std::nan("")); }

void History::fields(Fields& f) {
  f("epoch", epoch, {.doc = "from 1", .min = 1});
  f("partial", partial, "whether it ended before its last batch");
  f("loss", loss, "mean over the epoch's samples while training");
  f.rest(metrics, {.doc = "a metric; val_ before those of the validation split"});
  f("learning_rate", learning_rate, "of the last step");
  f("loss_scale", loss_scale, "at the end; null without scaling");
  f("skipped_steps", skipped_steps, "in the epoch");
  f("steps", steps, "in the epoch");
  f("train_seconds", train_seconds, "s");
  f("eval_seconds", eval_seconds, "s");
}

std::vector<std::string> History::metric_names() const {
  std::vector<std::string> names{"loss"};
  for (const auto& [name, column] : metrics) names.push_back(name);
  return names;
}

const Column* History::metric(std::string_view name) const { return column_of(*this, name); }

std::int64_t History::completed_epochs() const { return std::ranges::count(partial, false); }

History history_block(const std::vector<train::EpochRecord>& epochs,
                      const std::vector<std::string>& metrics) {
  History history;
  std::vector<std::string> names{"loss"};
  names.insert(names.end(), metrics.begin(), metrics.end());
  const bool validation =
      std::ranges::any_of(epochs, [](const auto& epoch) { return !epoch.validation.empty(); });
  const auto column = [&](const std::string& name, train::Metrics train::EpochRecord::*split) {
    Column values;
    for (const train::EpochRecord& e : epochs) {
      const auto it = (e.*split).find(name);
      values.push_back(it == (e.*split).end() ? std::nullopt : std::optional(it->second));
    }
    return values;
  };
  history.loss = column("loss", &train::EpochRecord::train);
  for (const std::string& name : metrics) {
    history.metrics.emplace_back(name, column(name, &train::EpochRecord::train));
  }
  for (const std::string& name : names) {
    if (!validation) break;
    history.metrics.emplace_back("val_" + name, column(name, &train::EpochRecord::validation));
  }
  for (const train::EpochRecord& e : epochs) {
    history.epoch.push_back(e.epoch);
    history.partial.push_back(e.partial);
    history.learning_rate.emplace_back(e.learning_rate);
    history.loss_scale.push_back(e.loss_scale);
    history.skipped_steps.push_back(e.skipped_steps);
    history.steps.push_back(e.steps);
    history.train_seconds.push_back(e.train_seconds);
    history.eval_seconds.push_back(e.eval_seconds);
  }
  return history;
}

std::vector<train::EpochRecord> read_history(const History& history) {
  std::vector<train::EpochRecord> epochs(history.epoch.size());
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    train::EpochRecord& e = epochs[i];
    e.epoch = history.epoch[i];
    e.partial = history.partial[i];
    e.learning_rate = real(history.learning_rate[i]);
    e.loss_scale = history.loss_scale[i];
    e.skipped_steps = history.skipped_steps[i];
    e.steps = history.steps[i];
    e.train_seconds = history.train_seconds[i];
    e.eval_seconds = history.eval_seconds[i];
    for (const std::string& name : history.metric_names()) {
      const bool validation = name.starts_with("val_");
      (validation ? e.validation : e.train)[validation ? name.substr(4) : name] =
          real((*history.metric(name))[i]);
    }
  }
  return epochs;
}

std::string missed_target(const train::TimeToAccuracy& target, const History& history) {
  const double sign = config::smaller_is_better(target.metric) ? -1 : 1;
  std::string best = "no epoch has a value of it";
  double best_value = -std::numeric_limits<double>::infinity();
  const Column* column = history.metric(target.metric);
  for (std::size_t i = 0; column != nullptr && i < column->size(); ++i) {
    const double value = sign * real((*column)[i]);
    if (!(value > best_value)) continue;
    best_value = value;
    best = fmt::format("the best was {:.6g}, in epoch {}", sign * value, history.epoch[i]);
  }
  return fmt::format("the target {}={:g} was not reached: {}", target.metric, target.target, best);
}

void StepColumns::fields(Fields& f) {
  f("interval", interval, {.doc = "batches of a value; the last one may have fewer", .min = 1});
  f("step",
    step,
    {.doc = "batches drawn up to the end of the interval",
     .min = 1,
     .max_elements = train::StepHistory::k_max_points});
  f("loss", loss, "mean over the interval's batches with a finite loss");
  f.rest(metrics,
         {.doc = "a metric over the interval's samples; null where an earlier version of the "
                 "program drew them"});
  f("learning_rate", learning_rate, "of the last batch");
  f("loss_scale", loss_scale, "after the last batch; null without scaling");
  f("skipped_steps", skipped_steps, "batches whose update was skipped");
}

const Column* StepColumns::metric(std::string_view name) const { return column_of(*this, name); }

StepColumns step_columns(const train::StepHistory& history) {
  StepColumns columns;
  columns.interval = history.interval;
  for (const train::StepPoint& point : history.points) {
    columns.step.push_back(point.step);
    columns.loss.push_back(point.loss());
    columns.learning_rate.emplace_back(point.learning_rate);
    columns.loss_scale.push_back(point.loss_scale);
    columns.skipped_steps.push_back(point.skipped);
  }
  for (std::size_t first = 0, end = 0; first < history.metrics.size(); first = end) {
    const std::string_view metric = nn::metric_of(history.metrics[first].name);
    std::vector<std::string_view> counters;
    for (; end < history.metrics.size(); ++end) {
      if (nn::metric_of(history.metrics[end].name) != metric) break;
      counters.push_back(history.metrics[end].name);
    }
    Column& values = columns.metrics.emplace_back(metric, Column()).second;
    std::vector<double> sums(counters.size());
    for (std::size_t i = 0; i < history.samples.size(); ++i) {
      for (std::size_t k = 0; k < sums.size(); ++k) sums[k] = history.metrics[first + k].sums[i];
      const auto samples = static_cast<double>(history.samples[i]);
      values.push_back(samples > 0 ? std::optional(nn::metric_value(counters, sums, samples))
                                   : std::nullopt);
    }
  }
  return columns;
}

train::StepHistory read_step_history(const StepColumns& columns) {
  train::StepHistory history{columns.interval, {}};
  for (const auto& [name, means] : columns.metrics) history.metrics.push_back({name, {}});
  for (std::size_t i = 0; i < columns.step.size(); ++i) {
    train::StepPoint point;
    point.step = columns.step[i];
    point.loss_sum = columns.loss[i].value_or(0);
    point.losses = columns.loss[i] ? 1 : 0;
    point.skipped = columns.skipped_steps[i];
    point.learning_rate = real(columns.learning_rate[i]);
    point.loss_scale = columns.loss_scale[i];
    history.points.push_back(point);
    const bool counted =
        columns.loss[i] || std::ranges::any_of(columns.metrics, [i](const auto& metric) {
          return metric.second[i].has_value();
        });
    history.samples.push_back(counted ? 1 : 0);
    // Of samples that were counted, a mean is missing where it was not finite.
    for (std::size_t k = 0; k < columns.metrics.size(); ++k) {
      history.metrics[k].sums.push_back(real(columns.metrics[k].second[i]));
    }
  }
  return history;
}

void Throughput::fields(Fields& f) {
  f.constant("unit", "img/s", "of the rates");
  f("total_ips", total_ips, "samples per second, data wait included");
  f("compute_ips", compute_ips, "samples per second without data wait");
  f("flops_per_step", flops_per_step, "of matmuls and convolutions, 2 per multiply-add");
  f("achieved_tflops", achieved_tflops, "10^12 operations per second");
  f("mfu", mfu, "achieved_tflops over peak_tflops; null without a peak");
  f("peak_tflops",
    peak_tflops,
    "10^12 operations per second of the processor's fastest multiply-add unit, whatever the dtype; "
    "null unless halfstep tune measured it on this processor, for one thread and for all, and "
    "where a step is faster");
  f.text_or_null("peak_source", peak_source, "how the peak was found; null without a peak");
  f("predicted_ms",
    predicted_ms,
    {.doc = "ms of a step on a device, predicted from its launches' operations and bytes; null on "
            "a CPU",
     .optional = true});
}

Throughput throughput_block(const train::StepTimeSummary& s,
                            double flops_per_step,
                            const backend::Backend& backend) {
  Throughput rates;
  rates.flops_per_step = flops_per_step;
  if (s.n == 0) return rates;
  rates.total_ips = s.total_samples_per_second;
  rates.compute_ips = s.compute_samples_per_second;
  rates.achieved_tflops = flops_per_step / (*s.median / 1e3) / 1e12;
  const auto* peak = backend.device ? nullptr : backend::register_peak(backend.capabilities);
  // A rate above the peak shows that the measurement of the peak was disturbed.
  if (peak == nullptr || peak->flops_per_second < *rates.achieved_tflops * 1e12) return rates;
  rates.peak_tflops = peak->flops_per_second / 1e12;
  rates.mfu = *rates.achieved_tflops / *rates.peak_tflops;
  rates.peak_source =
      fmt::format("registers of {}, {} threads, by tune", peak->processor, peak->threads);
  return rates;
}

}  // namespace halfstep::report

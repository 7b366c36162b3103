#include "progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/log.h"
#include "terminal.h"

namespace halfstep::app {
namespace {

/// Events that are printed individually; further ones are only counted.
constexpr std::int64_t k_max_reported = 20;

std::string describe(const train::FirstNonfinite& first) {
  return fmt::format("{} first in {} ({}, {})",
                     first.kind == "nan" ? "NaN" : "Inf",
                     first.tensor,
                     first.phase,
                     first.dtype);
}

constexpr std::chrono::duration<double> k_redraw{0.1};
constexpr double k_fade = 0.8;

/// The loss, or all other metrics.
std::string metrics_text(const train::Metrics& metrics, std::string_view prefix, bool loss) {
  std::vector<std::string> texts;
  for (const auto& [name, value] : metrics) {
    if ((name == "loss") == loss) texts.push_back(fmt::format("{}{} {:.4f}", prefix, name, value));
  }
  return fmt::format("{}", fmt::join(texts, "  "));
}

std::string bar(std::int64_t done, std::int64_t all) {
  constexpr int k_width = 24;
  const auto filled = static_cast<int>(k_width * done / std::max<std::int64_t>(all, 1));
  return fmt::format("[{:=<{}}{: <{}}]", "", filled, "", k_width - filled);
}

}  // namespace

ProgressOptions progress_options(const RunOptions& options) {
  ProgressOptions chosen;
  chosen.every = std::chrono::duration<double>(options.progress_every);
  const std::string& word = options.progress;
  chosen.style = options.quiet || word == "none"         ? ProgressStyle::none
                 : word == "lines"                       ? ProgressStyle::lines
                 : word == "bar" || stderr_is_terminal() ? ProgressStyle::bar
                                                         : ProgressStyle::lines;
  return chosen;
}

void show_line(std::vector<ProgressField> fields) {
  if (log_level() < LogLevel::info) return;
  const std::string fitted = fitted_line(fields, progress_width());
  write_fitted(fitted_line(std::move(fields), std::string::npos), fitted);
}

ProgressTimer::ProgressTimer(const ProgressOptions& options)
    : interval_(options.style == ProgressStyle::bar ? k_redraw : options.every),
      shown_(ProgressClock::now()) {}

void ProgressDisplay::on_step(const train::StepInfo& info) {
  if (style_ == ProgressStyle::none) return;
  for (Work* work : {&recent_, &epoch_}) {
    work->samples += static_cast<double>(info.time.samples);
    work->seconds += info.time.total;
  }
  pace_.update(info.counters.ordinal, info.total_steps);
  const bool last = style_ == ProgressStyle::bar && info.step_in_epoch == info.steps_per_epoch;
  if (!last && !timer_.due()) return;
  timer_.shown();
  const std::optional<double> left = pace_.seconds_left();
  const std::int64_t skipped = info.counters.skipped;
  std::vector<ProgressField> fields{
      {fmt::format("epoch {}/{}", info.epoch, info.epochs), 0},
      {style_ == ProgressStyle::bar ? bar(info.step_in_epoch, info.steps_per_epoch) : "", 8},
      {fmt::format("{}/{}", info.step_in_epoch, info.steps_per_epoch), 0},
      {metrics_text(info.running, "", true), 1},
      {metrics_text(info.running, "", false), 7},
      {fmt::format("{:.0f} samples/s", recent_.rate()), 3},
      {fmt::format("{} elapsed", duration_text(pace_.elapsed_seconds())), 6},
      {left ? "ETA " + duration_text(*left) : "", 2},
      {fmt::format("lr {:.3g}", info.learning_rate), 5},
      {info.loss_scale ? fmt::format("scale {:g}", *info.loss_scale) : "", 4},
      {skipped > 0 ? fmt::format("skipped {}", skipped) : "", 1}};
  if (style_ == ProgressStyle::lines) {
    show_line(std::move(fields));
    recent_ = {};
    return;
  }
  show_progress(fitted_line(std::move(fields), progress_width()));
  // Exponential decay: the weight of a step halves after about three redraws.
  recent_.samples *= k_fade;
  recent_.seconds *= k_fade;
}

void ProgressDisplay::on_scale(const train::ScaleEvent& event) {
  if (style_ == ProgressStyle::none || event.to > event.from) {
    log_debug("step {}: loss scale {} -> {}", event.attempt, event.from, event.to);
    return;
  }
  if (reported_ > k_max_reported) return;
  log_info("step {}: loss scale {} -> {}{}",
           event.attempt,
           event.from,
           event.to,
           event.first_nonfinite ? ": " + describe(*event.first_nonfinite) : "");
}

void ProgressDisplay::on_skip(const train::SkippedStep& skip) {
  if (style_ == ProgressStyle::none) return;
  if (++reported_ == k_max_reported + 1)
    log_info("further skipped steps are counted only; the report has all");
  if (reported_ > k_max_reported) return;
  log_info("step {} {}{}",
           skip.attempt,
           skip.retried ? "retried" : "skipped",
           skip.first_nonfinite ? ": " + describe(*skip.first_nonfinite) : "");
}

void ProgressDisplay::on_epoch(const train::EpochRecord& record) {
  if (style_ == ProgressStyle::none) return;
  const double per_step =
      record.steps > 0 ? record.train_seconds / static_cast<double>(record.steps) * 1e3 : 0;
  const std::optional<double> left = pace_.seconds_left();
  show_line({{fmt::format("epoch {}/{}", record.epoch, epochs_), 0},
             {fmt::format("{} steps", record.steps), 10},
             {fmt::format("{:.1f} s", record.train_seconds), 8},
             {fmt::format("{:.2f} ms/step", per_step), 6},
             {epoch_.seconds > 0 ? fmt::format("{:.0f} samples/s", epoch_.rate()) : "", 9},
             {metrics_text(record.train, "", true), 2},
             {metrics_text(record.train, "", false), 4},
             {metrics_text(record.validation, "val_", true), 3},
             {metrics_text(record.validation, "val_", false), 1},
             {record.loss_scale ? fmt::format("scale {}", *record.loss_scale) : "", 7},
             {record.skipped_steps > 0 ? fmt::format("skipped {}", record.skipped_steps) : "", 2},
             {left ? "ETA " + duration_text(*left) : "", 5},
             {record.partial ? "(partial)" : "", 0}});
  epoch_ = {};
  timer_.shown();
}

}  // namespace halfstep::app

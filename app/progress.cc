#include "progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "core/log.h"
#include "terminal.h"

namespace halfstep::app {
namespace {

/// Events told one by one before they are only counted.
constexpr std::int64_t k_most_told = 20;

std::string describe(const train::FirstNonfinite& first) {
  return fmt::format("{} first in {} ({}, {})",
                     first.kind == "nan" ? "NaN" : "Inf",
                     first.tensor,
                     first.phase,
                     first.dtype);
}

std::string metrics_text(const train::Metrics& metrics, std::string_view prefix) {
  std::string text;
  // Loss first, as everybody reads it.
  for (const auto& [name, value] : metrics) {
    if (name == "loss") text += fmt::format("  {}loss {:.4f}", prefix, value);
  }
  for (const auto& [name, value] : metrics) {
    if (name != "loss") text += fmt::format("  {}{} {:.4f}", prefix, name, value);
  }
  return text;
}

}  // namespace

ProgressStyle progress_style(const std::string& word, bool quiet) {
  if (quiet || word == "none") return ProgressStyle::none;
  if (word == "bar") return ProgressStyle::bar;
  if (word == "lines") return ProgressStyle::lines;
  return stderr_is_terminal() ? ProgressStyle::bar : ProgressStyle::lines;
}

void ProgressDisplay::on_step(const train::StepInfo& info) {
  if (style_ != ProgressStyle::bar) return;
  const Clock::time_point now = Clock::now();
  if (now - shown_ < std::chrono::milliseconds(100) && info.step_in_epoch < info.steps_per_epoch)
    return;
  shown_ = now;
  constexpr int k_width = 24;
  const auto filled = static_cast<int>(k_width * info.step_in_epoch /
                                       std::max<std::int64_t>(info.steps_per_epoch, 1));
  show_progress(fmt::format("epoch {}/{} [{:=<{}}{: <{}}] {}/{}{}  {:.2f} ms/step",
                            info.epoch,
                            info.epochs,
                            "",
                            filled,
                            "",
                            k_width - filled,
                            info.step_in_epoch,
                            info.steps_per_epoch,
                            metrics_text(info.running, ""),
                            info.time.total * 1e3));
}

void ProgressDisplay::on_scale(const train::ScaleEvent& event) {
  if (style_ == ProgressStyle::none || event.to > event.from) {
    log_debug("step {}: loss scale {} -> {}", event.attempt, event.from, event.to);
    return;
  }
  if (told_ > k_most_told) return;
  log_info("step {}: loss scale {} -> {}{}",
           event.attempt,
           event.from,
           event.to,
           event.first_nonfinite ? ": " + describe(*event.first_nonfinite) : "");
}

void ProgressDisplay::on_skip(const train::SkippedStep& skip) {
  if (style_ == ProgressStyle::none) return;
  if (++told_ == k_most_told + 1)
    log_info("further skipped steps are counted only; the report has all");
  if (told_ > k_most_told) return;
  log_info("step {} {}{}",
           skip.attempt,
           skip.retried ? "retried" : "skipped",
           skip.first_nonfinite ? ": " + describe(*skip.first_nonfinite) : "");
}

void ProgressDisplay::on_epoch(const train::EpochRecord& record) {
  if (style_ == ProgressStyle::none) return;
  const double per_step =
      record.steps > 0 ? record.train_seconds / static_cast<double>(record.steps) * 1e3 : 0;
  log_info("epoch {}/{}  {} steps  {:.1f} s  {:.2f} ms/step{}{}{}{}{}",
           record.epoch,
           epochs_,
           record.steps,
           record.train_seconds,
           per_step,
           metrics_text(record.train, ""),
           metrics_text(record.validation, "val_"),
           record.loss_scale ? fmt::format("  scale {}", *record.loss_scale) : "",
           record.skipped_steps > 0 ? fmt::format("  skipped {}", record.skipped_steps) : "",
           record.partial ? "  (partial)" : "");
}

}  // namespace halfstep::app

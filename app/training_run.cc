#include "training_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <span>

#include "backend/cost_model.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/system.h"
#include "environment.h"
#include "open_device.h"
#include "report/run_files.h"
#include "report/run_index.h"
#include "terminal.h"
#include "warnings.h"

namespace halfstep::app {
namespace {

/// Forwards events to the display and to metrics.jsonl.
class RunObserver final : public train::TrainObserver {
 public:
  RunObserver(ProgressDisplay& display, report::RunDirectory& directory)
      : display_(display), directory_(directory), start_(Clock::now()) {}

  void on_step(const train::StepInfo& info) override {
    display_.on_step(info);
    epoch_steps_ = info.step_in_epoch;
    // About twenty lines per epoch keep the files of long runs readable.
    const std::int64_t interval = std::max<std::int64_t>(1, info.steps_per_epoch / 20);
    if (info.step_in_epoch % interval != 0) return;
    report::Json data{{"train.loss", report::number(info.loss)},
                      {"train.total_ips",
                       report::number(static_cast<double>(info.time.samples) / info.time.total)},
                      {"train.learning_rate", report::number(info.learning_rate)}};
    if (info.loss_scale) data["train.grad_scale"] = report::number(*info.loss_scale);
    if (!info.applied) data["train.skipped"] = true;
    write({info.epoch, info.step_in_epoch}, std::move(data));
  }
  void on_scale(const train::ScaleEvent& event) override { display_.on_scale(event); }
  void on_skip(const train::SkippedStep& skip) override { display_.on_skip(skip); }
  void on_epoch(const train::EpochRecord& record) override {
    display_.on_epoch(record);
    report::Json data = report::Json::object();
    for (const auto& [name, value] : record.train) data["epoch." + name] = report::number(value);
    for (const auto& [name, value] : record.validation) data["val." + name] = report::number(value);
    data["epoch.skipped_steps"] = record.skipped_steps;
    write({record.epoch}, std::move(data));
    epoch_ended_ = true;
  }
  void on_numerics(const train::NumericsSample& sample) override {
    for (const train::TensorNumerics& tensor : sample.tensors) {
      report::Json line{{"ordinal", sample.ordinal},
                        {"loss_scale", report::number(sample.loss_scale)}};
      line.update(to_json(tensor));
      line.erase("steps");
      directory_.numerics(line);
    }
  }
  void on_checkpoint(const std::string& path) override { log_debug("checkpoint {}", path); }

  /// Whether an epoch has ended since the last call.
  bool take_epoch_end() { return std::exchange(epoch_ended_, false); }

 private:
  using Clock = std::chrono::steady_clock;

  void write(report::Json step, report::Json data) {
    const std::chrono::duration<double> elapsed = Clock::now() - start_;
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    directory_.metric({{"t", now.count()},
                       {"elapsed_s", report::number(elapsed.count())},
                       {"step", std::move(step)},
                       {"data", std::move(data)}});
  }

  ProgressDisplay& display_;
  report::RunDirectory& directory_;
  Clock::time_point start_;
  std::int64_t epoch_steps_ = 0;
  bool epoch_ended_ = false;
};

/// The run's report; nothing when there is none, or something else has its name.
std::optional<report::TrainReport> own_report(const report::RunDirectory& directory) {
  try {
    report::Document document = report::read_valid_report(directory.file(report::k_report_file));
    if (auto* found = std::get_if<report::TrainReport>(&document.report)) return std::move(*found);
  } catch (const UserError&) {
    // As good as none.
  }
  return std::nullopt;
}

/// Of a process that goes on from a checkpoint; the report counts those before it.
std::int64_t restart_count(const report::RunDirectory& directory) {
  const auto report = own_report(directory);
  return report ? report->run.restart_count + 1 : 1;
}

void print_summary(const report::TrainReport& report, const std::string& report_path) {
  const auto text = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4g}", *value) : std::string("-");
  };
  std::string line = fmt::format("{:<16} {:>8} steps  {:>8} ms/step (median)",
                                 fmt::format("{}", fmt::join(report.policies(), ",")),
                                 report.steps.applied,
                                 text(report.step_time.median));
  if (report.test) {
    for (const auto& [name, value] : *report.test) {
      line += fmt::format("  test_{} {}", name, text(value));
    }
  }
  print_line(line);
  print_line("report: {}", report_path);
}

/// Whether the run's report says how it ended. That of a run killed between its last checkpoint and
/// its report does not, and a run may have none that can be read.
bool is_final(const report::RunDirectory& directory) {
  const auto report = own_report(directory);
  return report && report::ending_named(report->status).state != report::RunState::interrupted;
}

/// Says why the run ended, where its report does.
void say_ending(const report::TrainReport& report,
                const std::string& prefix,
                const std::string& remedy) {
  if (report.message.empty()) return;
  const bool failed = report.exit_code == static_cast<int>(ErrorKind::numerics) ||
                      report.exit_code == static_cast<int>(ErrorKind::target);
  log(failed ? LogLevel::error : LogLevel::info, prefix + report.message + remedy);
}

/// A resume of a completed run prints its report again.
int print_again(const report::RunDirectory& directory, const config::RunSpec& spec, bool json) {
  const std::string path = directory.file(report::k_report_file);
  const report::Document document = report::read_valid_report(path);
  const auto& report = std::get<report::TrainReport>(document.report);
  log_info("{}: the run has ended; this is its report", directory.path());
  const std::optional<std::string> was = report::read_run_spec(directory.path()).training.target;
  if (spec.training.target && spec.training.target != was) {
    log_warning(
        "the report was made {}, and does not say whether {} was reached; --epochs gives the run "
        "more epochs",
        was ? "with the target " + *was : "without a target",
        *spec.training.target);
  }
  say_ending(report,
             directory.path() + ": ",
             report::ending_named(report.status).state == report::RunState::failed
                 ? "; a run that diverged does not go on: begin one with other settings"
                 : "");
  if (json) {
    fmt::print("{}", read_file(path));
  } else {
    print_summary(report, path);
  }
  return static_cast<int>(report.exit_code.value_or(0));
}

int signal_of(config::SlurmSignal word) {
  switch (word) {
    case config::SlurmSignal::usr1:
      return SIGUSR1;
    case config::SlurmSignal::usr2:
      return SIGUSR2;
    case config::SlurmSignal::term:
      return SIGTERM;
  }
  return SIGTERM;
}

/// `slurm.requeue: self`: requeues the job; by default that is left to the batch script.
void ask_for_requeue(const config::SlurmSpec& spec, const std::optional<report::SlurmJob>& job) {
  if (spec.requeue != config::SlurmRequeue::self) return;
  if (job) {
    requeue(*job);
  } else {
    log_warning("slurm.requeue is self, but this is no Slurm job (SLURM_JOB_ID is not set)");
  }
}

int dry_run(train::Session& session, bool json) {
  train::TrainObserver silent;
  train::TrainOptions once;
  once.evaluate_test = false;
  train::Trainer trainer(session, once, silent);
  trainer.advance(1);
  const train::MemoryUse memory = session.memory();
  const int exit_code = trainer.result().status == train::Status::diverged
                            ? static_cast<int>(ErrorKind::numerics)
                            : 0;
  if (json) {
    fmt::print("{}", report::dump(to_json(report::DryRunReport{exit_code, memory})));
    return exit_code;
  }
  const auto mebibytes = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  fmt::print(
      "one step done; variables {:.1f} MiB, step arena {:.1f} MiB, data {:.1f} MiB, peak RSS "
      "{:.1f} MiB\n",
      mebibytes(memory.state_bytes),
      mebibytes(memory.arena_bytes),
      mebibytes(memory.data_bytes),
      mebibytes(memory.peak_rss_bytes));
  return exit_code;
}

}  // namespace

int run_training(const RunOptions& options, const TrainFlags& flags) {
  apply_logging(options);
  const LoadedConfig loaded = load_config(options);
  const config::RunSpec& spec = loaded.spec;

  Resume resume = find_resume(options, flags.resume, spec.name);
  std::optional<report::RunDirectory> claimed;
  if (!flags.dry_run) {
    claimed.emplace(resume.run_dir.empty() ? options.run_dir : resume.run_dir, spec);
    if (claimed->occupied() && !resume.asked) {
      throw UserError(ErrorKind::config,
                      {"--run-dir", 0, 0, ""},
                      fmt::format("{} holds a run already", claimed->path()),
                      "--resume auto goes on with it");
    }
    // Another process may have written to the directory before it was locked.
    if (!resume.run_dir.empty()) resume = find_resume(options, flags.resume, spec.name);
    if (resume.asked && resume.checkpoint.empty()) {
      log_info("{}: no checkpoint yet, so training starts at its beginning", claimed->path());
    }
  }
  const std::vector<std::string> changed = check_settings(resume, spec, flags.resume.allowed);

  const backend::Backend device = open_device(spec, resume.origin());
  const data::Dataset dataset = load_data(loaded);
  train::Session session(spec, dataset, device);
  print_warnings(session.warnings());
  say_device(device);
  if (flags.dry_run) return dry_run(session, options.json);
  report::RunDirectory& directory = *claimed;

  report::RunInfo run;
  run.started_at = utc_now();
  run.directory = directory.path();
  run.overrides = loaded.overrides;
  run.command = command_words();
  run.configs = loaded.texts;
  run.slurm = slurm_job();
  run.restart_count = resume.checkpoint.empty() ? 0 : restart_count(directory);
  run.id = Hasher().add(run.started_at).add(directory.path()).add(host_name()).hex().substr(0, 12);

  ProgressDisplay display(progress_options(options), spec.training.epochs);
  RunObserver observer(display, directory);
  train::TrainOptions train_options;
  train_options.directory = [&] { return directory.path(); };
  train_options.resume = resume.checkpoint;
  train_options.changed = changed;
  train_options.init_from = flags.init_from;
  train_options.requests = train::take_request;
  train_options.numerics = true;
  const train::InterruptGuard signals(signal_of(spec.slurm.signal));
  train::Trainer trainer(session, train_options, observer);
  if (trainer.done() && is_final(directory)) {
    return print_again(directory, spec, options.json);
  }
  print_warnings(trainer.warnings());
  directory.begin(spec, run, report::context(device), true);
  write_file_atomically(directory.file(report::k_run_data_file),
                        report::dump(report::run_data(dataset)));
  if (!device.device) {
    write_file_atomically(directory.file(report::k_cost_model_file),
                          backend::cost_model(device.capabilities).text());
  }
  keep_messages(directory.file(report::k_log_file));
  // The next process counts this one, however soon it is killed.
  if (run.restart_count > 0) {
    directory.write_report(report::train_report(session, trainer.result(), run, true));
  }

  while (trainer.advance(trainer.steps_to_epoch_end())) {
    if (observer.take_epoch_end()) {
      directory.write_report(report::train_report(session, trainer.result(), run, true));
    }
  }
  const train::TrainResult result = trainer.finish();
  clear_progress();
  const report::TrainReport report = report::train_report(session, result, run, false);
  directory.write_report(report);
  // The warnings known before training were printed before its first step.
  tell_warnings(std::span(result.warnings).subspan(trainer.warnings().size()));
  say_ending(report, "", "");
  if (result.status == train::Status::preempted) ask_for_requeue(spec.slurm, run.slurm);
  if (options.json) {
    fmt::print("{}", report::dump(to_json(report)));
  } else {
    print_summary(report, directory.file(report::k_report_file));
  }
  return static_cast<int>(report.exit_code.value_or(0));
}

}  // namespace halfstep::app

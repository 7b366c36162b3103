#include "training_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <span>
#include <thread>

#include "backend/cost_model.h"
#include "backend/cuda/cuda.h"
#include "core/files.h"
#include "core/log.h"
#include "open_device.h"
#include "ranks.h"
#include "report/parallel_block.h"
#include "report/run_files.h"
#include "report/run_index.h"
#include "slurm.h"
#include "study_run.h"
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
  bool epoch_ended_ = false;
};

/// The run's report; nothing when there is none, or something else has its name.
std::optional<report::TrainReport> own_report(const report::RunDirectory& directory) {
  try {
    report::Document document = report::read_valid_report(directory.file(report::k_report_file));
    if (auto* found = std::get_if<report::TrainReport>(&document.report)) return std::move(*found);
  } catch (const UserError&) {
    // A damaged report counts as none.
  }
  return std::nullopt;
}

/// The number of restarts up to this one from a checkpoint; the report has those before it.
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

/// Whether the run's report has a final status: not if the run was killed between its last
/// checkpoint and its report, or has no readable report.
bool is_final(const report::RunDirectory& directory) {
  const auto report = own_report(directory);
  return report && report::ending_named(report->status).state != report::RunState::interrupted;
}

/// Says why the run ended, where its report does.
void print_ending(const report::TrainReport& report,
                  const std::string& prefix,
                  const std::string& remedy) {
  if (report.message.empty()) return;
  const bool failed = report.exit_code == static_cast<int>(ErrorKind::numerics) ||
                      report.exit_code == static_cast<int>(ErrorKind::target) ||
                      report.exit_code == static_cast<int>(ErrorKind::ranks);
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
  print_ending(report,
               directory.path() + ": ",
               report::ending_named(report.status).state == report::RunState::failed
                   ? "; a run that diverged cannot be continued: start one with other settings"
                   : "");
  if (json) {
    fmt::print("{}", read_file(path));
  } else {
    print_summary(report, path);
  }
  return static_cast<int>(report.exit_code.value_or(0));
}

int dry_run(train::Session& session, const std::string& init_from, bool json, bool speaks) {
  train::TrainObserver silent;
  train::TrainOptions once;
  once.evaluate_test = false;
  once.init_from = init_from;
  train::Trainer trainer(session, once, silent);
  trainer.advance(1);
  const train::MemoryUse memory = session.memory();
  const int exit_code = trainer.result().status == train::Status::diverged
                            ? static_cast<int>(ErrorKind::numerics)
                            : 0;
  if (!speaks) return exit_code;
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

/// The start of a run: the same on all ranks, except that rank 0 alone has the directory.
struct StartedRun {
  LoadedConfig loaded;
  Resume resume;
  std::optional<report::RunDirectory> directory;
  std::vector<std::string> changed;  ///< settings unlike those of the resumed run
};

/// Reads the config and claims the run directory.
void claim(const RunOptions& options,
           const TrainFlags& flags,
           const Ranks& ranks,
           StartedRun& start) {
  const config::RunSpec& spec = start.loaded.spec;
  Resume& resume = start.resume;
  if (!ranks.speaks()) return;
  resume = find_resume(options, flags.resume, spec.name);
  if (!flags.dry_run) {
    const report::RunDirectory& claimed =
        start.directory.emplace(resume.run_dir.empty() ? options.run_dir : resume.run_dir, spec);
    if (claimed.occupied() && !resume.requested) {
      throw UserError(ErrorKind::config,
                      {"--run-dir", 0, 0, ""},
                      fmt::format("{} already contains a run", claimed.path()),
                      "--resume auto continues it");
    }
    // Another process may have written to the directory before it was locked.
    if (!resume.run_dir.empty()) resume = find_resume(options, flags.resume, spec.name);
    if (resume.requested && resume.checkpoint.empty()) {
      log_info("{}: no checkpoint yet, so training starts at its beginning", claimed.path());
    }
  }
  for (const std::string& warning : resume.warnings) log_warning("{}", warning);
  start.changed = check_settings(resume, spec, flags.resume.allowed);
}

/// Errors: UserError(config) where ranks would not train the same model with the same kernels.
void compare_ranks(const Ranks& ranks, const train::Session& session) {
  const report::BuildInfo build = report::build_info();
  const std::string program =
      fmt::format("{} {}{}", build.version, build.git_commit, build.git_dirty ? "+" : "");
  ranks.require_same(
      "config", config::config_hash(session.spec()), "start all with the same flags and files");
  ranks.require_same("build of halfstep", program, "start the same program on all hosts");
  ranks.require_same("instruction set",
                     backend::name(session.backend().capabilities.isa),
                     "HALFSTEP_MAX_ISA on all ranks limits them to the weaker one");
  ranks.require_same("data", session.training_data_hash(), "give all hosts the same files");
  ranks.require_same(
      "device", session.backend().name, "--device on all ranks, or hosts of one kind");
}

/// Time for the rank that saves the last state: a launcher ends all ranks once one has failed.
constexpr std::chrono::milliseconds k_farewell{2000};

/// A rank that neither prints nor writes files.
int train_silently(train::Session& session, train::TrainOptions options, const Ranks& ranks) {
  train::TrainObserver silent;
  std::optional<train::Trainer> trainer;
  ranks.together([&] { trainer.emplace(session, options, silent); });
  if (!ranks.from_first("").empty()) {
    ranks.close();
    return 0;
  }
  while (trainer->advance(trainer->steps_to_epoch_end())) {
  }
  train::TrainResult result = trainer->finish();
  report::gather_ranks(session, result);
  if (result.status == train::Status::rank_lost) {
    log(LogLevel::error, result.message);
    std::this_thread::sleep_for(k_farewell);
  } else {
    ranks.close();
  }
  return report::exit_code(session.spec(), result);
}

/// The rank that prints and writes the files of the run.
int train_and_report(const RunOptions& options,
                     const StartedRun& start,
                     report::RunDirectory& directory,
                     train::Session& session,
                     train::TrainOptions train_options,
                     const Ranks& ranks) {
  const config::RunSpec& spec = session.spec();
  const backend::Backend& device = session.backend();
  report::RunInfo run = run_info(start.loaded.texts, start.loaded.overrides, start.directory);
  run.slurm = slurm_job();
  run.restart_count = start.resume.checkpoint.empty() ? 0 : restart_count(directory);
  run.rank_count = ranks.alone() ? 1 : ranks.communicator()->size();

  ProgressDisplay display(progress_options(options), spec.training.epochs);
  RunObserver observer(display, directory);
  train_options.directory = [&] { return directory.path(); };
  train_options.changed = start.changed;
  train_options.numerics = true;
  std::optional<train::Trainer> trainer_storage;
  ranks.together([&] {
    train_options.requests = requests_within_limit(spec.training);
    trainer_storage.emplace(session, train_options, observer);
  });
  train::Trainer& trainer = *trainer_storage;
  const bool ended = trainer.done() && is_final(directory);
  ranks.from_first(ended ? "ended" : "");
  if (ended) {
    ranks.close();
    return print_again(directory, spec, options.json);
  }
  print_warnings(trainer.warnings());
  directory.begin(spec, run, report::context(device), true);
  write_file_atomically(directory.file(report::k_run_data_file),
                        report::dump(report::run_data(session.dataset())));
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
  train::TrainResult result = trainer.finish();
  clear_progress();
  run.ranks = report::gather_ranks(session, result);
  if (run.ranks) log_info("{}", report::parallel_line(*run.ranks));
  // At the end, also after an error: ranks that end with another code than 0 wait for it, and then
  // a launcher ends all others.
  struct Closing {
    const Ranks& ranks;
    bool with_ranks;
    ~Closing() {
      if (with_ranks) ranks.close();
    }
  } const closing{ranks, run.ranks.has_value()};
  const report::TrainReport report = report::train_report(session, result, run, false);
  directory.write_report(report);
  // The warnings known before training were printed before its first step.
  log_warnings(std::span(result.warnings).subspan(trainer.warnings().size()));
  print_ending(report, "", "");
  if (result.status == train::Status::preempted) requeue(spec.slurm, run.slurm);
  if (options.json) {
    fmt::print("{}", report::dump(to_json(report)));
  } else {
    print_summary(report, directory.file(report::k_report_file));
  }
  return static_cast<int>(report.exit_code.value_or(0));
}

int train_among(const RunOptions& options, const TrainFlags& flags, const Ranks& ranks) {
  StartedRun start;
  ranks.together([&] {
    start.loaded = load_config(options);
    // Before the wait for the other ranks, which may be slow to read it.
    if (!ranks.alone()) ranks.communicator()->set_timeout(start.loaded.spec.parallel.timeout);
  });
  ranks.together([&] { claim(options, flags, ranks, start); });
  const LoadedConfig& loaded = start.loaded;
  const config::RunSpec& spec = loaded.spec;
  Resume& resume = start.resume;
  resume.checkpoint = ranks.from_first(resume.checkpoint);

  backend::Backend device;
  data::Dataset dataset;
  std::optional<train::Session> created;
  ranks.together([&] {
    device = open_device(spec, resume.origin(), &ranks);
    dataset = load_data(loaded);
    created.emplace(spec, dataset, device);
  });
  train::Session& session = *created;
  compare_ranks(ranks, session);
  if (!ranks.alone() && device.device) {
    ranks.together([&] { backend::cuda::join_ranks(device, ranks.communicator()); });
  }
  if (ranks.speaks()) print_warnings(session.warnings());
  if (ranks.speaks()) print_device(device);
  if (!ranks.alone()) {
    log_info("{} ranks by {}: {}",
             ranks.hosts().size(),
             ranks.communicator()->transport().library,
             ranks.summary());
  }
  if (flags.dry_run) {
    const int exit_code = dry_run(session, flags.init_from, options.json, ranks.speaks());
    ranks.close();
    return exit_code;
  }

  train::TrainOptions train_options;
  train_options.resume = resume.checkpoint;
  train_options.init_from = flags.init_from;
  train_options.requests = train::take_request;
  const train::InterruptGuard signals(signal_number(spec.slurm.signal));
  if (ranks.speaks()) {
    ranks.from_first(std::filesystem::absolute(start.directory->path()).string());
    return train_and_report(
        options, start, *start.directory, session, std::move(train_options), ranks);
  }
  train_options.directory = [place = ranks.from_first("")] { return place; };
  train_options.saves = false;
  return train_silently(session, std::move(train_options), ranks);
}

}  // namespace

int run_training(const RunOptions& options, const TrainFlags& flags) {
  apply_logging(options);
  const Ranks ranks;
  try {
    return train_among(options, flags, ranks);
  } catch (const EndedByAll& end) {
    // Rank 0 prints why first: a launcher ends all ranks once one has failed.
    std::this_thread::sleep_for(k_farewell / 4);
    return end.exit_code;
  }
}

}  // namespace halfstep::app

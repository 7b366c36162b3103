#pragma once
// The files of a run: config.yaml (as given; further ones are config.2.yaml, ...),
// config.resolved.yaml (with every setting, paths absolute), command.txt, env.json, data.json
// (see run_files.h), metrics.jsonl,
// numerics.jsonl, report.json, status.json, log.txt (messages of the program), exports of the
// report, tb/ and checkpoints/.

#include <filesystem>
#include <memory>
#include <string>

#include "config/run_spec.h"
#include "report/any_report.h"
#include "report/context.h"
#include "train/observer.h"

namespace halfstep::report {

/// The folder of all runs, in the working directory.
inline constexpr std::string_view k_runs_folder = "runs";

/// The link to the newest training run, next to the runs of one name.
inline constexpr std::string_view k_latest_link = "latest";

/// Points the link next to a run directory to it. A link that cannot be created is skipped: only
/// `--resume auto` reads it.
void link_latest(const std::filesystem::path& directory);

/// The directory of a run, locked against other processes.
class RunDirectory {
 public:
  /// Creates the directory if needed and locks it. `requested` is the directory itself; "" creates
  /// a new one, `runs/<name>/<UTC>-<config hash 8>` under the working directory. A directory
  /// created here in which no run begins is removed again. Errors: UserError(data) when it cannot
  /// be created, or is locked by another process.
  RunDirectory(const std::string& requested, const config::RunSpec& spec);
  RunDirectory(RunDirectory&&) noexcept;
  RunDirectory& operator=(RunDirectory&&) noexcept;
  ~RunDirectory();

  /// The present path, as DirectoryLock::path() returns it, with its errors.
  const std::string& path() const;
  /// The path of a file in the directory. Errors: as path().
  std::string file(std::string_view name) const;
  /// Whether the directory already contains a run.
  bool occupied() const;

  /// Writes the files that are known at the start. A training run in a directory of the default
  /// name becomes the `latest`; comparisons and benchmarks, from which nothing resumes, do not.
  /// Errors: UserError(data) when it cannot be written.
  void begin(const config::RunSpec& spec,
             const RunInfo& run,
             const Context& environment,
             bool training);

  /// Appends one line to metrics.jsonl.
  void metric(const Json& line);
  /// Appends one line to numerics.jsonl.
  void numerics(const Json& line);
  /// Writes report.json and status.json, each complete or not at all, and the other formats that
  /// the config's `report` asks for: the event file in tb/ each time, the other formats when the
  /// run has ended.
  template <class Report>
  void write_report(const Report& report) {
    write_report(to_json(report), AnyReport(report));
  }

 private:
  void write_report(const Json& json, const AnyReport& report);

  struct Claim;
  std::unique_ptr<Claim> claim_;
  bool default_place_ = false;
  config::ReportSpec wanted_;
  JsonLines metrics_;
  JsonLines numerics_;
};

}  // namespace halfstep::report

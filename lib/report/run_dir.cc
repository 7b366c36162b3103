#include "report/run_dir.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "core/directory_lock.h"
#include "core/files.h"
#include "core/system.h"
#include "report/export/event_file.h"
#include "report/export/exporter.h"
#include "report/run_files.h"
#include "report/text.h"
#include "train/checkpoint.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

}  // namespace

void link_latest(const fs::path& directory) {
  std::error_code error;
  const fs::path link = directory.parent_path() / k_latest_link;
  const fs::path fresh = directory.parent_path() / fmt::format(".{}-{}", k_latest_link, ::getpid());
  fs::create_symlink(directory.filename(), fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) fs::remove(fresh, error);
}

/// A directory of this process, removed again if no run began in it.
struct RunDirectory::Claim {
  std::string path;
  bool made = false;   ///< created by this process
  bool begun = false;  ///< it holds a run now
  std::optional<DirectoryLock> lock;

  /// Creates the directory; with `must_be_new`, returns false if it exists.
  bool make(bool must_be_new) {
    made = make_folder(path);
    if (!made && must_be_new) return false;
    lock.emplace(path);
    return true;
  }

  ~Claim() {
    if (!made || begun || !lock) return;
    std::error_code error;
    fs::remove(fs::path(path) / k_lock_file, error);
    fs::remove(path, error);
  }
};

RunDirectory::RunDirectory(const std::string& requested, const config::RunSpec& spec)
    : claim_(std::make_unique<Claim>()), wanted_(spec.report) {
  if (!requested.empty()) {
    const fs::path path(requested);
    claim_->path = path.has_filename() ? requested : path.parent_path().string();
    claim_->make(false);
    return;
  }
  default_place_ = true;
  const std::string base = fmt::format("{}/{}/{}-{}",
                                       k_runs_folder,
                                       spec.name,
                                       utc_now_compact(),
                                       config::config_hash(spec).substr(0, 8));
  claim_->path = base;
  for (int i = 2; !claim_->make(true); ++i) claim_->path = fmt::format("{}-{}", base, i);
}

RunDirectory::RunDirectory(RunDirectory&&) noexcept = default;
RunDirectory& RunDirectory::operator=(RunDirectory&&) noexcept = default;
RunDirectory::~RunDirectory() = default;

const std::string& RunDirectory::path() const { return claim_->lock->path(); }

std::string RunDirectory::file(std::string_view name) const {
  return (fs::path(path()) / name).string();
}

bool RunDirectory::occupied() const {
  std::error_code error;
  return fs::exists(file(k_report_file), error) ||
         fs::exists(file(k_resolved_config_file), error) ||
         fs::exists(file(train::k_checkpoints_folder), error);
}

void RunDirectory::begin(const config::RunSpec& spec,
                         const RunInfo& run,
                         const Context& environment,
                         bool training) {
  claim_->begun = true;
  write_file_atomically(file(k_resolved_config_file),
                        config::print(spec, {.absolute_paths = true}));
  for (std::size_t i = 0; i < run.configs.size(); ++i) {
    write_file_atomically(file(config_copy_file(i)), run.configs[i]);
  }
  write_file_atomically(file(k_command_file), joined(run.command) + "\n");
  write_file_atomically(file(k_environment_file), dump(to_json(environment)));
  if (default_place_ && training) link_latest(path());
}

void RunDirectory::metric(const Json& line) { metrics_.append(file(k_metrics_file), line); }

void RunDirectory::numerics(const Json& line) { numerics_.append(file(k_numerics_file), line); }

void RunDirectory::write_report(const Json& json, const AnyReport& report) {
  write_file_atomically(file(k_report_file), dump(json));
  const Json status{{"status", json.at("status")},
                    {"exit_code", json.at("exit_code")},
                    {"message", json.at("message")},
                    {"updated_at", utc_now()}};
  write_file_atomically(file(k_status_file), dump(status));
  const auto* training = std::get_if<TrainReport>(&report);
  if (wanted_.tensorboard && training != nullptr) {
    update_event_file(file(fmt::format("{}/{}", k_tensorboard_folder, k_tensorboard.file)),
                      event_records(*training));
  }
  if (json.at("status") == "running") return;
  for (const std::string& format : wanted_.formats) {
    const Exporter& exporter = find_exporter(format, "report.formats");
    if (&exporter == &k_json) continue;
    // Formats are configured once for all commands on a config; a benchmark has no history to
    // export in some of them.
    if (const auto text = exporter.write(report)) {
      write_file_atomically(file(exporter.file), *text);
    }
  }
}

}  // namespace halfstep::report

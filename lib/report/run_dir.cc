#include "report/run_dir.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/files.h"
#include "core/system.h"
#include "report/export/event_file.h"
#include "report/export/exporter.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const std::string& why) {
  throw UserError(ErrorKind::data, {path, 0, 0, ""}, why);
}

}  // namespace

RunDirectory::RunDirectory(std::string asked, const config::RunSpec& spec)
    : path_(std::move(asked)), wanted_(spec.report) {
  if (!path_.empty()) return;
  default_place_ = true;
  const std::string base = fmt::format(
      "runs/{}/{}-{}", spec.name, utc_now_compact(), config::config_hash(spec).substr(0, 8));
  path_ = base;
  for (int i = 2; fs::exists(path_); ++i) path_ = fmt::format("{}-{}", base, i);
}

std::string RunDirectory::file(std::string_view name) const {
  return (fs::path(path_) / name).string();
}

bool RunDirectory::occupied() const {
  std::error_code error;
  return fs::exists(file("report.json"), error) ||
         fs::exists(file("config.resolved.yaml"), error) || fs::exists(file("checkpoints"), error);
}

void RunDirectory::begin(const config::RunSpec& spec, const RunInfo& run, const Json& environment) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error || !fs::is_directory(path_)) {
    fail(path_,
         "cannot make the run directory: " +
             (error ? error.message() : std::string("something else has that name")));
  }
  std::string command;
  for (const std::string& word : run.command) command += (command.empty() ? "" : " ") + word;
  write_file_atomically(file("config.resolved.yaml"),
                        config::print(spec, {.absolute_paths = true}));
  for (std::size_t i = 0; i < run.configs.size(); ++i) {
    const std::string name = i == 0 ? "config.yaml" : fmt::format("config.{}.yaml", i + 1);
    write_file_atomically(file(name), run.configs[i]);
  }
  write_file_atomically(file("command.txt"), command + "\n");
  write_file_atomically(file("env.json"), dump(environment));
  metrics_ = JsonLines(file("metrics.jsonl"));
  numerics_ = JsonLines(file("numerics.jsonl"));
  if (!default_place_) return;
  const fs::path link = fs::path(path_).parent_path() / "latest";
  const fs::path fresh = fs::path(path_).parent_path() / fmt::format(".latest-{}", run.id);
  fs::create_symlink(fs::path(path_).filename(), fresh, error);
  if (!error) fs::rename(fresh, link, error);
  if (error) fs::remove(fresh, error);
}

void RunDirectory::write_report(const Json& report) {
  write_file_atomically(file("report.json"), dump(report));
  const Json status{{"status", report.at("status")},
                    {"exit_code", report.at("exit_code")},
                    {"message", report.value("message", "")},
                    {"updated_at", utc_now()}};
  write_file_atomically(file("status.json"), dump(status));
  if (wanted_.tensorboard && k_tensorboard.accepts(report)) {
    update_event_file(file("tb/" + std::string(k_tensorboard.file)), event_records(report));
  }
  if (report.at("status") == "running") return;
  for (const std::string& format : wanted_.formats) {
    const Exporter& exporter = find_exporter(format, "report.formats");
    // Formats are asked for once, for everything that is done with a config; a benchmark has no
    // history that one of them could tell.
    if (&exporter == &k_json || !exporter.accepts(report)) continue;
    write_file_atomically(file(exporter.file), exporter.write(report));
  }
}

}  // namespace halfstep::report

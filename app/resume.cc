#include <fmt/format.h>

#include <filesystem>

#include "config/differences.h"
#include "core/log.h"
#include "core/ranges.h"
#include "environment.h"
#include "report/run_dir.h"
#include "report/run_files.h"
#include "train/checkpoint.h"
#include "training_run.h"

namespace halfstep::app {
namespace {

namespace fs = std::filesystem;

/// The directory of the newest run of this name under the working directory, or "".
std::string latest_run(const std::string& run_name) {
  std::error_code error;
  const fs::path latest = fs::path(report::k_runs_folder) / run_name / report::k_latest_link;
  return fs::is_directory(latest, error) ? fs::weakly_canonical(latest, error).string() : "";
}

}  // namespace

std::string Resume::origin() const {
  return fs::path(checkpoint).parent_path().parent_path().string();
}

Resume find_resume(const RunOptions& options,
                   const ResumeFlags& flags,
                   const std::string& run_name) {
  std::string word = flags.resume;
  const auto restarts = environment("SLURM_RESTART_COUNT");
  if (word.empty() && restarts && *restarts != "0") word = "auto";
  if (word.empty()) return {};
  if (word == "auto") {
    const std::string run_dir = options.run_dir.empty() ? latest_run(run_name) : options.run_dir;
    if (run_dir.empty()) return {true, "", ""};
    Resume resume{true, "", run_dir};
    resume.checkpoint = train::find_checkpoint(run_dir, resume.warnings).value_or("");
    return resume;
  }
  std::vector<std::string> warnings;
  const auto checkpoint = train::find_checkpoint(word, warnings);
  if (!checkpoint) {
    throw UserError(
        ErrorKind::data,
        {word, 0, 0, ""},
        fs::exists(word) ? "contains no complete checkpoint" : "there is no such checkpoint");
  }
  Resume resume{true, *checkpoint, options.run_dir, std::move(warnings)};
  if (resume.run_dir.empty()) resume.run_dir = resume.origin();
  return resume;
}

std::vector<std::string> check_settings(const Resume& resume,
                                        const config::RunSpec& spec,
                                        const std::vector<std::string>& allowed) {
  if (resume.checkpoint.empty()) return {};
  const std::string path = (fs::path(resume.origin()) / report::k_resolved_config_file).string();
  std::error_code error;
  if (!fs::exists(path, error)) {
    log_warning("{} is missing, so the settings cannot be compared with those of the run", path);
    return {};
  }
  Diagnostics diagnostics;
  const std::vector<std::string> files{path};
  const config::RunSpec before =
      config::parse_run_spec(config::assemble(files, {}, diagnostics), diagnostics);
  diagnostics.throw_if_any();
  return mapped<std::string>(config::check_resume(before, spec, allowed),
                             [&](const config::Difference& d) {
                               return fmt::format("{}: {} -> {}", d.path, d.before, d.after);
                             });
}

}  // namespace halfstep::app

#include "train/verify_resume.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <system_error>

#include "command.h"
#include "number_flags.h"
#include "open_device.h"
#include "report/machine_reports.h"
#include "run_options.h"

namespace halfstep::app {
namespace {

struct VerifyResumeFlags {
  RunOptions run;
  std::int64_t at_step = 20;
};

/// A folder that is removed on destruction.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "halfstep-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) {
      throw std::system_error(errno, std::generic_category(), "cannot make " + name);
    }
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int verify(const VerifyResumeFlags& state) {
  apply_logging(state.run);
  const LoadedConfig loaded = load_config(state.run);
  const backend::Backend device = open_device(loaded.spec);
  const data::Dataset dataset = load_data(loaded);
  const ScratchFolder folder;
  const train::ResumeCheck check =
      train::verify_resume(loaded.spec, dataset, device, state.at_step, folder.path());
  const int exit_code = check.equal() ? 0 : 1;
  if (state.run.json) {
    const report::VerifyResumeReport report{exit_code,
                                            check.at_step,
                                            check.steps,
                                            check.equal(),
                                            check.whole_hash,
                                            check.resumed_hash,
                                            check.differing};
    fmt::print("{}", report::dump(to_json(report)));
  } else if (check.equal()) {
    fmt::print(
        "stopped after step {} and resumed, the run is bitwise identical after step {} to the "
        "uninterrupted run: {}\n",
        check.at_step,
        check.steps,
        check.whole_hash);
  } else {
    fmt::print(
        "stopped after step {} and resumed, the run differs after step {} from the uninterrupted "
        "run in: {}\n",
        check.at_step,
        check.steps,
        fmt::join(check.differing, ", "));
  }
  return exit_code;
}

std::function<int()> declare_verify_resume(CLI::App& command) {
  const auto state = std::make_shared<VerifyResumeFlags>();
  declare(command, state->run, {.json = true});
  add_integer(command,
              "--at-step",
              state->at_step,
              {.min = 1},
              "batches before the run is left; as many follow");
  return [state] { return verify(*state); };
}

}  // namespace

extern const Command k_verify_resume{
    "verify-resume", "check that a resumed run equals an uninterrupted one", declare_verify_resume};

}  // namespace halfstep::app

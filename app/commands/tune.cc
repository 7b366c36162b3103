#include "study/tune.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "command.h"
#include "core/files.h"
#include "core/log.h"
#include "core/system.h"
#include "number_flags.h"
#include "open_device.h"
#include "report/json.h"
#include "report/machine_reports.h"
#include "terminal.h"
#include "train/interrupt.h"

namespace halfstep::app {
namespace {

struct TuneFlags {
  std::string output;
  std::int64_t rounds = 5;
  double max_minutes = 10;
  bool force = false;
  bool json = false;
  bool quiet = false;
};

/// The result is rejected above this fraction of kernels that were never timed at the processor's
/// full rate.
constexpr double k_max_disturbed = 0.1;

/// The number of shapes for which each kernel is the fastest, by kind and dtype.
std::string summary(const backend::CostModel& model) {
  std::map<std::string, std::map<std::string, int>> wins;
  for (const backend::CostModel::Sample& sample : model.samples()) {
    backend::Workload w = sample.workload;
    if (w.products == 0) w.products = 3;
    const auto fastest = model.predictions(w).front();
    if (fastest.kernel != sample.kernel) continue;
    ++wins[fmt::format("{:<21} {:<9}", name(w.kind), name(w.dtype))][sample.kernel];
  }
  std::string text;
  for (const auto& [kind, kernels] : wins) {
    text += kind;
    for (const auto& [kernel, count] : kernels) text += fmt::format("  {} {}x", kernel, count);
    text += '\n';
  }
  return text;
}

int tune(const TuneFlags& state) {
  const backend::Backend cpu = backend::cpu_backend(1, max_isa());
  const train::InterruptGuard signals;
  const std::string path = state.output.empty() ? cost_model_path(cpu.capabilities) : state.output;
  if (path.empty()) {
    throw UserError(ErrorKind::config,
                    {"--output", 0, 0, ""},
                    "neither XDG_CACHE_HOME nor HOME names a folder for the measurement",
                    "name a file with --output");
  }
  // A file that cannot be written is found before minutes of measurement.
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) make_folder(folder.string());
  OutputFile file(path);
  study::TuneOptions options;
  options.rounds = static_cast<int>(state.rounds);
  options.max_seconds = 60 * state.max_minutes;
  options.stop = [] { return train::take_request() != train::Request::none; };
  if (!state.quiet) {
    options.progress = [](int pass, std::size_t done, std::size_t all) {
      if (done % 50 != 0) return;
      log_info("{} of {} {}workloads", done, all, pass == 0 ? "" : "disturbed ");
    };
  }
  const study::TuneResult result = study::tune(cpu, options);
  if (result.stopped) {
    log_warning("interrupted: nothing was written");
    return 130;
  }
  const double disturbed = static_cast<double>(result.disturbed) /
                           static_cast<double>(std::max<std::size_t>(1, result.samples.size()));
  if (disturbed > k_max_disturbed && !state.force) {
    throw UserError(
        ErrorKind::unavailable,
        {},
        fmt::format(
            "the machine was not quiet: {:.0f} % of the kernels were never timed at {:.0f} % "
            "of the processor's rate or more; nothing was written",
            100 * disturbed,
            100 * study::k_full_rate),
        "end other programs and repeat, measure for longer with --max-minutes, or keep the "
        "measurements with --force");
  }
  const backend::CostModel model(fmt::format("measured {} on {}, {}, oneDNN {}, registers {:.0f} "
                                             "GFLOP/s a thread, {:.0f} % of timings disturbed",
                                             utc_now(),
                                             cpu_model(),
                                             name(cpu.capabilities.isa),
                                             backend::onednn_version(),
                                             result.peak_gflops,
                                             100 * disturbed),
                                 result.samples,
                                 result.peaks);
  file.write(model.text());
  file.commit();
  if (state.json) {
    report::TuneReport report;
    report.file = report::utf8(path);
    report.origin = report::utf8(model.origin());
    report.measurements = model.samples().size();
    report.register_gflops = result.peak_gflops;
    report.disturbed_share = disturbed;
    fmt::print("{}", report::dump(to_json(report)));
  } else {
    fmt::print(
        "{}\nThe fastest kernel, of the shapes measured:\n{}", model.origin(), summary(model));
    print_line("written: {}", path);
  }
  return 0;
}

std::function<int()> declare_tune(CLI::App& command) {
  const auto state = std::make_shared<TuneFlags>();
  command.add_option(
      "-o,--output", state->output, "file (default: in the user's cache, where runs find it)");
  add_integer(command,
              "--rounds",
              state->rounds,
              {2, 1000},
              "turns of each kernel; the second shortest counts");
  add_time(command,
           "--max-minutes",
           state->max_minutes,
           "minutes",
           "time in which disturbed measurements are repeated");
  command.add_flag("--force", state->force, "keep measurements of a machine that was not quiet");
  command.add_flag("--json", state->json, "print the measurements as JSON");
  command.add_flag("-q,--quiet", state->quiet, "no progress");
  return [state] { return tune(*state); };
}

}  // namespace

extern const Command k_tune{
    "tune", "measure this processor's kernels, by which runs then choose", declare_tune};

}  // namespace halfstep::app

#include "report/run_config.h"

#include <algorithm>
#include <filesystem>

#include "config/differences.h"
#include "config/load.h"
#include "core/error.h"
#include "report/run_files.h"

namespace halfstep::report {

config::RunSpec read_run_spec(const std::string& directory) {
  Diagnostics diagnostics;
  const std::string path = (std::filesystem::path(directory) / k_resolved_config_file).string();
  try {
    config::RunSpec spec =
        config::parse_run_spec(config::load_file(path, diagnostics), diagnostics);
    diagnostics.throw_if_any(ErrorKind::data);
    return spec;
  } catch (const UserError& error) {
    // An invalid config is an error of kind config elsewhere; here it is a file of a run.
    throw UserError(ErrorKind::data, error.problems());
  }
}

std::vector<Difference> setting_rows(const std::string& directory_a,
                                     const std::string& directory_b) {
  std::vector<Difference> rows;
  for (const config::Difference& d :
       config::differences(read_run_spec(directory_a), read_run_spec(directory_b))) {
    rows.push_back({utf8(d.path), utf8(d.before), utf8(d.after)});
  }
  return rows;
}

bool same_step(const std::string& directory_a, const std::string& directory_b) {
  const auto decides = [](const config::Difference& d) {
    return config::within(d.path, "model") || config::within(d.path, "data") ||
           config::within(d.path, "training.batch_size");
  };
  try {
    const auto found = config::differences(read_run_spec(directory_a), read_run_spec(directory_b));
    return std::none_of(found.begin(), found.end(), decides);
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace halfstep::report

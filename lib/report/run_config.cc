#include "report/run_config.h"

#include <filesystem>

#include "config/differences.h"
#include "config/load.h"
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

}  // namespace halfstep::report

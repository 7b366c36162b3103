#include "version_text.h"

#include <fmt/format.h>

#include "backend/backend.h"
#include "report/build_info.h"

namespace halfstep::app {

std::string version_text() {
  const report::BuildInfo build = report::build_info();
  return fmt::format("halfstep {} ({}{}, {}, {})\noneDNN {}",
                     build.version,
                     build.git_commit.empty() ? "no commit" : build.git_commit.substr(0, 12),
                     build.git_dirty ? "+changes" : "",
                     build.build_type,
                     build.compiler,
                     backend::onednn_version());
}

}  // namespace halfstep::app

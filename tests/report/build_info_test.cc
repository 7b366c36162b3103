// The commit that a program says it was built from, in checkouts made by hand.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>
#include <string_view>

#include "core/files.h"
#include "report/context.h"
#include "support/paths.h"
#include "support/temporary_directory.h"

namespace halfstep::report {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view text) { std::ofstream(path) << text; }

void in(const fs::path& folder, const std::string& command) {
  CAPTURE(command);
  REQUIRE(std::system(fmt::format("cd '{}' && {}", folder.string(), command).c_str()) == 0);
}

/// "COMMIT DIRTY", as a build of the sources in `folder` would have them.
std::string built_in(const fs::path& folder) {
  write(folder / "template", "@commit@ @dirty@ ");
  in(folder,
     fmt::format("cmake -DSOURCE='{0}' -DTEMPLATE='{0}/template' -DOUTPUT='{0}/out' -P '{1}'",
                 folder.string(),
                 (test::source_dir() / "scripts/BuildInfo.cmake").string()));
  const std::string text = read_file((folder / "out").string());
  return text.substr(0, text.rfind(' '));
}

TEST_CASE("build info: the commit is that of the sources, and changes of them are said") {
  if (std::system("git --version >/dev/null && cmake --version >/dev/null") != 0) {
    MESSAGE("git or cmake is not installed; skipped");
    return;
  }
  const test::TemporaryDirectory directory;
  const fs::path root = directory.path();
  fs::create_directories(root / "lib");
  write(root / "CMakeLists.txt", "");
  write(root / "lib/a.cc", "");
  in(root, "git init -q .");
  in(root, "git add CMakeLists.txt lib");
  in(root, "git -c user.name=a -c user.email=a@b commit -qm first");
  in(root, "git rev-parse HEAD >head");
  const std::string head = read_file((root / "head").string()).substr(0, 40);

  CHECK(built_in(root) == head + " false");  // files beside the sources are no change of them
  write(root / "lib/b.cc", "");
  CHECK(built_in(root) == head + " true");
  fs::remove(root / "lib/b.cc");
  write(root / "lib/a.cc", "int a;");
  CHECK(built_in(root) == head + " true");

  // An archive unpacked into another project's checkout has no commit of its own.
  fs::create_directories(root / "unpacked");
  write(root / "unpacked/CMakeLists.txt", "");
  CHECK(built_in(root / "unpacked") == " false");
}

TEST_CASE("build info: a report has the commit that the program was built from") {
  const BuildInfo build = build_info();
  const Context block = context(backend::cpu_backend(1));
  CHECK(block.git_commit == build.git_commit);
  CHECK(block.git_dirty == build.git_dirty);
  CHECK((build.git_commit.empty() || build.git_commit.size() == 40));
}

}  // namespace
}  // namespace halfstep::report

// Writing a result keeps links, modes, pipes and devices at its path.

#include "core/files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "core/error.h"
#include "support/temporary_directory.h"

namespace halfstep {
namespace {

namespace fs = std::filesystem;

mode_t mode_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode;
}

}  // namespace

TEST_CASE("files: writing over a symbolic link keeps the link and writes its target") {
  const test::TemporaryDirectory folder;
  fs::create_directory(folder.file("elsewhere"));
  write_file_atomically(folder.file("elsewhere/target"), "old");
  fs::create_symlink("elsewhere/target", folder.file("link"));
  fs::create_symlink("link", folder.file("link_to_link"));
  write_file_atomically(folder.file("link_to_link"), "new");
  CHECK(fs::is_symlink(folder.file("link_to_link")));
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(read_file(folder.file("elsewhere/target")) == "new");

  fs::create_symlink("elsewhere/absent", folder.file("dangling"));
  write_file_atomically(folder.file("dangling"), "made");
  CHECK(fs::is_symlink(folder.file("dangling")));
  CHECK(read_file(folder.file("elsewhere/absent")) == "made");

  fs::create_symlink("circle", folder.file("circle"));
  CHECK_THROWS_AS(write_file_atomically(folder.file("circle"), "x"), UserError);
}

TEST_CASE("files: an existing file keeps its mode") {
  const test::TemporaryDirectory folder;
  for (const mode_t mode : {mode_t{0600}, mode_t{0664}, mode_t{0755}}) {
    CAPTURE(mode);
    const std::string path = folder.file("result");
    write_file_atomically(path, "old");
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    write_file_atomically(path, "new");
    CHECK((mode_of(path) & 07777) == mode);
    CHECK(read_file(path) == "new");
  }
}

TEST_CASE("files: a FIFO is written through and stays a FIFO") {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("pipe");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  auto reader = std::async(std::launch::async, [&] { return read_file(path); });
  write_file_atomically(path, "through the pipe");
  CHECK(reader.get() == "through the pipe");
  CHECK(S_ISFIFO(mode_of(path)));
}

TEST_CASE("files: a file is read to its end or to a limit, and an error of a read is one") {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("long");
  const std::string text(200'000, 'x');
  write_file_atomically(path, text);
  CHECK(read_file(path) == text);
  CHECK(read_file(path, 70'000) == text.substr(0, 70'000));
  CHECK_THROWS_AS(read_file(folder.file("none")), UserError);
  CHECK_THROWS_AS(read_file(folder.path().string()), UserError);
  CHECK_THROWS_AS(read_file("/proc/self/mem"), UserError);  // its first page is not mapped
}

TEST_CASE("files: a device is written through and a full one is an error") {
  const mode_t null = mode_of("/dev/null");
  const mode_t full = mode_of("/dev/full");
  write_file_atomically("/dev/null", "gone");
  CHECK_THROWS_AS(write_file_atomically("/dev/full", "no room"), UserError);
  CHECK(mode_of("/dev/null") == null);
  CHECK(mode_of("/dev/full") == full);
}

TEST_CASE("files: nothing is left beside a file that could not be written") {
  const test::TemporaryDirectory folder;
  fs::create_directory(folder.file("taken"));
  CHECK_THROWS_AS(write_file_atomically(folder.file("taken"), "x"), UserError);
  { OutputFile unfinished(folder.file("result")); }
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

}  // namespace halfstep

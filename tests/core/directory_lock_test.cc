#include "core/directory_lock.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>

#include "core/error.h"
#include "support/temporary_directory.h"

namespace halfstep {
namespace {

TEST_CASE("directory lock: whether it is held can be asked without a trace") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path().string();
  CHECK(directory_in_use(path) == false);
  CHECK(std::filesystem::is_empty(directory.path()));
  {
    const DirectoryLock lock(path);
    CHECK(directory_in_use(path) == true);
    CHECK(directory_in_use(path) == true);
    CHECK_THROWS_AS(DirectoryLock second(path), UserError);
  }
  // The lock file stays; it is not locked.
  CHECK(std::filesystem::exists(directory.path() / k_lock_file));
  CHECK(directory_in_use(path) == false);
  const DirectoryLock again(path);
}

TEST_CASE("directory lock: a refusal names a holder that has yet to write its name") {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path().string();
  const DirectoryLock holder(path);
  const std::string file = directory.file(k_lock_file);
  std::filesystem::resize_file(file, 0);
  std::jthread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    std::ofstream(file) << "process 1\n";
  });
  try {
    const DirectoryLock second(path);
    FAIL("locked twice");
  } catch (const UserError& error) {
    CHECK(std::string_view(error.what()).find("directory: process 1 (") != std::string_view::npos);
  }
}

TEST_CASE("directory lock: the path follows a directory that is renamed") {
  const test::TemporaryDirectory directory;
  const std::string before = directory.file("before");
  std::filesystem::create_directory(before);
  DirectoryLock lock(before);
  CHECK(lock.path() == before);
  std::filesystem::rename(before, directory.file("after"));
  std::filesystem::create_directory(before);  // another one, which is not locked
  CHECK(lock.path() == directory.file("after"));
  CHECK(lock.path() == directory.file("after"));
  std::filesystem::remove_all(directory.file("after"));
  CHECK_THROWS_WITH_AS(
      lock.path(),
      doctest::Contains("was removed, or the file .lock in it, while this process"),
      UserError);
}

TEST_CASE("directory lock: a lock file that is a link says nothing") {
  const test::TemporaryDirectory directory;
  std::ofstream(directory.file("elsewhere")) << "";
  std::filesystem::create_symlink("elsewhere", directory.file(k_lock_file));
  CHECK_FALSE(directory_in_use(directory.path().string()).has_value());
}

}  // namespace
}  // namespace halfstep

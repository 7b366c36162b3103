// scripts/fetch_datasets.sh against a mirror on the disk; nothing here uses the network.

#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "files.h"
#include "support/paths.h"

namespace halfstep::data::testing {
namespace {

struct Outcome {
  int status = 0;
  std::string output;
};

Outcome fetch(const std::string& arguments) {
  const std::string command = fmt::format(
      "'{}' {} 2>&1", (test::source_dir() / "scripts/fetch_datasets.sh").string(), arguments);
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Outcome outcome;
  std::array<char, 4096> piece{};
  while (const std::size_t n = std::fread(piece.data(), 1, piece.size(), pipe)) {
    outcome.output.append(piece.data(), n);
  }
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

TEST_CASE("fetch script: wrong use is exit status 2 and says what is wrong") {
  struct Case {
    std::string_view arguments;
    std::string_view message;
  };
  constexpr std::array cases{
      Case{"", "usage:"},
      Case{"imagenet", "unknown data set 'imagenet'; known are: mnist fashion_mnist"},
      Case{"--frobnicate mnist", "unknown option --frobnicate"},
      Case{"--dir", "--dir needs a value"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.arguments);
    const Outcome outcome = fetch(std::string(c.arguments));
    CHECK(outcome.status == 2);
    CHECK(contains(outcome.output, c.message));
  }
  CHECK(fetch("--help").status == 0);
}

TEST_CASE("fetch script: a file with another checksum is not kept, and a part is for later") {
  if (std::system("command -v curl >/dev/null") != 0) {
    MESSAGE("curl is not installed; skipped");
    return;
  }
  const TempFolder folder;
  const std::string first = "train-images-idx3-ubyte.gz";
  write_bytes(folder.file("mirror/" + first), bytes("not what was published"));
  const std::string common =
      fmt::format("--dir '{}/d' --mirror 'file://{}/", folder.path(), folder.path());
  const Outcome wrong = fetch(common + "mirror' mnist");
  CAPTURE(wrong.output);
  CHECK(wrong.status == 1);
  CHECK(contains(wrong.output, "is not the published file"));
  CHECK(std::filesystem::is_empty(folder.path() + "/d/mnist"));

  write_bytes(folder.file("d/mnist/" + first + ".partial"), bytes("the first half"));
  const Outcome absent = fetch(common + "nowhere' mnist");
  CAPTURE(absent.output);
  CHECK(absent.status == 1);
  CHECK(contains(absent.output, "could not be had"));
  CHECK(read_file(folder.file("d/mnist/" + first + ".partial")) == bytes("the first half"));

  // A link in place of the part is not followed.
  const Bytes precious = bytes("what it points to");
  write_bytes(folder.file("precious"), precious);
  const std::string part = folder.file("d/mnist/" + first + ".partial");
  std::filesystem::remove(part);
  std::filesystem::create_symlink(folder.file("precious"), part);
  CHECK(fetch(common + "mirror' mnist").status == 1);
  CHECK(read_file(folder.file("precious")) == precious);

  const Outcome missing = fetch(fmt::format("--dir '{}/d' --verify mnist", folder.path()));
  CHECK(missing.status == 1);
  CHECK(contains(missing.output, first + " is missing"));
}

TEST_CASE("fetch script: published files are taken, finished when cut off, and left alone") {
  const char* data = std::getenv("HALFSTEP_DATA");
  const std::string mirror = fmt::format("{}/mnist", data != nullptr ? data : "");
  const std::string image = "train-images-idx3-ubyte.gz";
  if (data == nullptr || !std::filesystem::exists(mirror + "/" + image) ||
      std::system("command -v curl >/dev/null") != 0) {
    MESSAGE("MNIST is not in HALFSTEP_DATA, or curl is not installed; skipped");
    return;
  }
  const TempFolder folder;
  const Bytes whole = read_file(mirror + "/" + image);
  write_bytes(folder.file("mnist/" + image + ".partial"), std::span(whole).first(whole.size() / 2));
  const std::string arguments =
      fmt::format("--dir '{}' --mirror 'file://{}' mnist", folder.path(), mirror);
  const Outcome taken = fetch(arguments);
  CAPTURE(taken.output);
  REQUIRE(taken.status == 0);
  CHECK(read_file(folder.file("mnist/" + image)) == whole);
  const auto time = std::filesystem::last_write_time(folder.file("mnist/" + image));
  const Outcome again = fetch(arguments);
  CHECK(again.status == 0);
  CHECK(contains(again.output, image + " is there"));
  CHECK(std::filesystem::last_write_time(folder.file("mnist/" + image)) == time);

  write_bytes(folder.file("mnist/" + image), std::span(whole).first(1000));
  const Outcome damaged = fetch(fmt::format("--dir '{}' --verify mnist", folder.path()));
  CHECK(damaged.status == 1);
  CHECK(contains(damaged.output, image + " is damaged"));
  CHECK(fetch(arguments).status == 0);
  CHECK(read_file(folder.file("mnist/" + image)) == whole);
}

}  // namespace
}  // namespace halfstep::data::testing

// Less memory than a command needs.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "app/small_run.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

/// Runs halfstep with at most this address space.
Finished limited(long kib, const std::vector<std::string>& arguments, const fs::path& directory) {
  std::vector<std::string> words{
      "sh", "-c", "ulimit -v " + std::to_string(kib) + "; ulimit -c 0; exec \"$0\" \"$@\""};
  for (const std::string& word : halfstep_words(arguments)) words.push_back(word);
  return Process(words, directory).wait();
}

/// The files below a folder, with their sizes.
std::vector<std::pair<std::string, std::uintmax_t>> files(const fs::path& folder) {
  std::vector<std::pair<std::string, std::uintmax_t>> found;
  if (!fs::exists(folder)) return found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) found.emplace_back(entry.path().string(), entry.file_size());
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST_CASE("memory: a command that gets too little ends with 7, whenever it runs out" *
          doctest::test_suite("slow")) {
  const TemporaryDirectory directory;
  write_config(directory);
  REQUIRE(train(directory, "trained").exit_code == 0);
  const std::string out = directory.file("out");
  constexpr long k_enough = 4L << 20, k_exact = 32;
  const auto needed = [&](const std::vector<std::string>& words, long from) {
    for (long too_little = from, enough = k_enough;;) {
      if (enough - too_little <= k_exact) return enough;
      const long half = (too_little + enough) / 2;
      fs::remove_all(out);
      (limited(half, words, directory.path()).exit_code == 0 ? enough : too_little) = half;
    }
  };
  if (limited(k_enough, {"--version"}, directory.path()).exit_code != 0) {
    MESSAGE("no limit of the address space can be set here; not tried");
    return;
  }
  // With less, the system's loader ends before the program begins.
  const long to_start = needed({"--version"}, 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "run.yaml", "--run-dir", "out", "--threads", "2"},
        {"report", "show", "trained"},
        {"eval", "trained"},
        {"data", "synth", "--out", "out", "--samples", "4000", "--test-samples", "100"}}) {
    CAPTURE(words[0]);
    const long needs = needed(words, to_start);
    fs::remove_all(out);
    REQUIRE(limited(k_enough, words, directory.path()).exit_code == 0);
    const auto whole = files(out);
    constexpr long k_steps = 16;
    for (long step = 0; step < k_steps; ++step) {
      const long kib = to_start + (needs - to_start) * step / k_steps;
      CAPTURE(kib);
      fs::remove_all(out);
      const Finished end = limited(kib, words, directory.path());
      CAPTURE(end.err);
      CAPTURE(end.signal);
      if (end.exit_code == 0) continue;
      CHECK(end.exit_code == 7);
      CHECK(holds(end.err, "out of memory"));
      for (const auto& file : files(out)) {
        CAPTURE(file.first);
        if (words[0] == "data") CHECK(std::find(whole.begin(), whole.end(), file) != whole.end());
        CHECK_FALSE(file.first.ends_with(".tmp"));
      }
      for (const auto& entry : fs::exists(directory.file("out/checkpoints"))
                                   ? fs::directory_iterator(directory.file("out/checkpoints"))
                                   : fs::directory_iterator()) {
        CHECK(fs::exists(entry.path() / "DONE"));
      }
    }
  }
}

}  // namespace
}  // namespace halfstep::test

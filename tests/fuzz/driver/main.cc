// Runs every target on mutated copies of its seeds, with a limit of time and memory per input.
// Builds with any compiler; libFuzzer, which looks for new paths by itself, is beside it in
// libfuzzer/.
//
//   fuzz_driver [--target NAME] [--runs N] [--seed S] [--seconds T] [--corpus DIR] [FILE...]
//
// --runs: inputs a target (default 500). --seconds: limit per input (default 5). --corpus: writes
// the seeds to DIR/<target>/ and runs nothing. FILEs are run as they are, with --target. An input
// that fails is left in ./fuzz-<target>.input; the exit status is then 1.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>

#include "core/log.h"
#include "core/system.h"
#include "fuzz/targets.h"
#include "support/mutate.h"

namespace halfstep::fuzz {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t k_mebibyte = std::uint64_t{1} << 20U;
/// By which one input may raise the peak memory of the process.
constexpr std::uint64_t k_max_memory = 256 * k_mebibyte;
/// Address space: far above it, so that the allocation of an unchecked size fails at once.
constexpr std::uint64_t k_address_space = 4096 * k_mebibyte;
constexpr std::size_t k_largest_pool = 64;
constexpr std::size_t k_largest_input = 256 * 1024;

struct Options {
  std::string target;
  std::int64_t runs = 500;
  std::uint64_t seed = 20261122;
  std::int64_t seconds = 5;
  std::string corpus;
  std::vector<std::string> files;
};

template <class T>
T number(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::invalid_argument("not a number: " + text);
  }
  return value;
}

Options options(const std::vector<std::string>& words) {
  Options o;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with("--")) {
      o.files.push_back(word);
      continue;
    }
    if (i + 1 == words.size()) throw std::invalid_argument(word + " needs a value");
    const std::string& value = words[++i];
    if (word == "--target") {
      o.target = value;
    } else if (word == "--runs") {
      o.runs = number<std::int64_t>(value);
    } else if (word == "--seed") {
      o.seed = number<std::uint64_t>(value);
    } else if (word == "--seconds") {
      o.seconds = number<std::int64_t>(value);
    } else if (word == "--corpus") {
      o.corpus = value;
    } else {
      throw std::invalid_argument("unknown option " + word);
    }
  }
  if (!o.target.empty() && find_target(o.target) == nullptr) {
    std::string known;
    for (const Target& target : targets()) known += " " + std::string(target.name);
    throw std::invalid_argument("unknown target " + o.target + "; targets:" + known);
  }
  if (!o.files.empty() && o.target.empty()) throw std::invalid_argument("files need --target");
  return o;
}

/// The current input in a file, which remains when the process crashes on it.
class CurrentInput {
 public:
  explicit CurrentInput(const Target& target)
      : path_("fuzz-" + std::string(target.name) + ".input"),
        descriptor_(open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644)) {
    if (descriptor_ < 0) throw std::runtime_error("cannot write " + path_);
  }
  ~CurrentInput() {
    close(descriptor_);
    if (!kept_) unlink(path_.c_str());
  }
  CurrentInput(const CurrentInput&) = delete;
  CurrentInput& operator=(const CurrentInput&) = delete;

  void set(const std::string& input) const {
    const bool written =
        ftruncate(descriptor_, 0) == 0 &&
        pwrite(descriptor_, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size());
    if (!written) throw std::runtime_error("cannot write " + path_);
  }
  void keep() { kept_ = true; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int descriptor_;
  bool kept_ = false;
};

extern "C" void out_of_time(int) {
  constexpr char k_text[] = "an input takes too long; it is left in ./fuzz-<target>.input\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, k_text, sizeof k_text - 1);
  _exit(1);
}

void limit_seconds(std::int64_t seconds) {
  itimerval timer{};
  timer.it_value.tv_sec = seconds;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

/// Sanitizers map terabytes, which no limit may forbid.
void limit_address_space() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t pages = 0;
  statm >> pages;
  const std::uint64_t used = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (used > 1024 * 1024 * k_mebibyte) return;
  const rlimit limit{used + k_address_space, used + k_address_space};
  setrlimit(RLIMIT_AS, &limit);
}

/// Runs one input. Errors: std::exception of any type when it fails.
void run_one(const Target& target, const std::string& input, std::int64_t seconds) {
  const std::uint64_t before = peak_rss_bytes();
  limit_seconds(seconds);
  target.test_one(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  limit_seconds(0);
  const std::uint64_t grown = peak_rss_bytes() - before;
  if (grown > k_max_memory) {
    throw std::runtime_error("takes " + std::to_string(grown / k_mebibyte) + " MiB");
  }
}

/// A mutation of one input of the pool, or of two of them joined somewhere.
std::string mutated(const std::vector<std::string>& pool,
                    const Target& target,
                    std::mt19937& random) {
  std::string input = pool[random() % pool.size()];
  if (random() % 8 == 0) {
    const std::string& other = pool[random() % pool.size()];
    input = input.substr(0, random() % (input.size() + 1)) +
            other.substr(random() % (other.size() + 1));
  }
  input = test::damaged(std::move(input), random, target.tokens);
  if (input.size() > k_largest_input) input.resize(k_largest_input);
  return input;
}

bool run_target(const Target& target, const Options& o) {
  CurrentInput current(target);
  std::vector<std::string> pool = target.seeds();
  const std::size_t seeds = pool.size();
  std::mt19937 random(static_cast<std::mt19937::result_type>(o.seed));
  const Clock::time_point start = Clock::now();
  double slowest = 0;
  std::int64_t read = 0;
  try {
    for (std::int64_t i = 0; i < o.runs + static_cast<std::int64_t>(seeds); ++i) {
      const bool seed = i < static_cast<std::int64_t>(seeds);
      const std::string input =
          seed ? pool[static_cast<std::size_t>(i)] : mutated(pool, target, random);
      current.set(input);
      const std::size_t before = accepted_inputs();
      const Clock::time_point begin = Clock::now();
      run_one(target, input, o.seconds);
      slowest = std::max(slowest, std::chrono::duration<double>(Clock::now() - begin).count());
      const bool accepted = accepted_inputs() > before;
      if (seed && !accepted) throw std::runtime_error("a seed is refused");
      if (seed || !accepted) continue;
      ++read;
      // Accepted inputs explore more code than inputs that are rejected at once.
      if (pool.size() < k_largest_pool) {
        pool.push_back(input);
      } else {
        pool[seeds + random() % (k_largest_pool - seeds)] = input;
      }
    }
    // Both must happen, or the mutations are of the wrong size.
    if (o.runs >= 100 && (read == 0 || read == o.runs)) {
      throw std::runtime_error(read == 0 ? "no mutation is read" : "no mutation is refused");
    }
  } catch (const std::exception& error) {
    limit_seconds(0);
    current.keep();
    std::printf("%.*s: FAILED: %s; the input is in %s\n",
                static_cast<int>(target.name.size()),
                target.name.data(),
                error.what(),
                current.path().c_str());
    return false;
  }
  std::printf("%-18.*s %lld inputs, %lld read, slowest %.1f ms, %.1f s\n",
              static_cast<int>(target.name.size()),
              target.name.data(),
              static_cast<long long>(o.runs),
              static_cast<long long>(read),
              slowest * 1e3,
              std::chrono::duration<double>(Clock::now() - start).count());
  std::fflush(stdout);
  return true;
}

void write_corpus(const Target& target, const std::string& folder) {
  const fs::path place = fs::path(folder) / target.name;
  fs::create_directories(place);
  int count = 0;
  for (const std::string& seed : target.seeds()) {
    std::ofstream(place / std::to_string(count++), std::ios::binary) << seed;
  }
}

int run(const Options& o) {
  std::signal(SIGALRM, out_of_time);
  bool good = true;
  for (const Target& target : targets()) {
    if (!o.target.empty() && o.target != target.name) continue;
    if (!o.corpus.empty()) {
      write_corpus(target, o.corpus);
      continue;
    }
    for (const std::string& path : o.files) {
      std::ifstream file(path, std::ios::binary);
      std::ostringstream text;
      text << file.rdbuf();
      const std::size_t before = accepted_inputs();
      run_one(target, text.str(), o.seconds);
      std::printf("%s: %s\n", path.c_str(), accepted_inputs() > before ? "read" : "refused");
    }
    if (o.files.empty()) good = run_target(target, o) && good;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace halfstep::fuzz

int main(int argc, char** argv) {
  try {
    const auto options = halfstep::fuzz::options({argv + 1, argv + argc});
    halfstep::fuzz::limit_address_space();
    halfstep::set_log_level(halfstep::LogLevel::error);  // of thousands of inputs
    return halfstep::fuzz::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

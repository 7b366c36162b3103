// bench_peak [ISA]: the register peak of each unit that multiplies and the bandwidth of a copy, on
// all processors that the process may use, at this moment. For each line on standard input one JSON
// object is printed, as a line; it takes about 0.1 s. A program that measures others holds this one
// open and asks before and after each sample, since on shared hosts both rates change within
// seconds. ISA caps the instruction set (baseline, avx2, avx512, avx512_bf16, amx).
//
//   {"isa": "amx", "threads": 2, "units": [{"unit": "amx_bf16", "instruction": "TDPBF16PS",
//    "gflops": 5200, "per_thread": [2600, 2600], "running": [1, 1]}, ...], "copy_gbs": 25.1}
//
// Each thread is bound to a processor. `running` is the share of the time in which it had the
// processor; `gflops` adds the threads' rates over wall time. `copy_gbs` counts bytes read and
// written. On other than x86-64 `units` is empty: not measured.

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "backend/cpu/processor.h"
#include "core/parallel.h"
#include "core/system.h"

namespace halfstep::bench {
namespace {

using backend::cpu::peak_units;
using backend::cpu::PeakUnit;

using Clock = std::chrono::steady_clock;

constexpr double k_seconds = 0.02;
/// A thread's share of the two buffers, together; all threads' are larger than most caches.
constexpr std::size_t k_copied_bytes = std::size_t{128} << 20;

double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// The first `n` processors of the affinity mask.
std::vector<int> processors(int n) {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> result;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return result;
  for (int i = 0; i < CPU_SETSIZE && std::ssize(result) < n; ++i) {
    if (CPU_ISSET(i, &set)) result.push_back(i);
  }
  return result;
}

struct Rate {
  double per_second = 0;
  double running = 0;
};

/// Calls `work(thread)` on `n` threads at once, over and over for `k_seconds`; the sum of its
/// results per second, for each thread.
template <class Begin, class Work, class End>
std::vector<Rate> rates(int n, Begin begin, Work work, End end) {
  const std::vector<int> where = processors(n);
  std::vector<Rate> result(static_cast<std::size_t>(n));
  std::atomic<int> ready = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < n; ++i) {
    threads.emplace_back([&, i] {
      if (i < std::ssize(where)) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(where[static_cast<std::size_t>(i)], &set);
        pthread_setaffinity_np(pthread_self(), sizeof set, &set);
      }
      begin();
      ++ready;
      while (ready < n) std::this_thread::yield();
      work(i);
      const double used = thread_seconds();
      const auto start = Clock::now();
      double done = 0;
      while (since(start) < k_seconds) done += work(i);
      const double wall = since(start);
      result[static_cast<std::size_t>(i)] = {done / wall, (thread_seconds() - used) / wall};
      end();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return result;
}

double total(const std::vector<Rate>& list) {
  double sum = 0;
  for (const Rate& rate : list) sum += rate.per_second;
  return sum;
}

std::string unit_json(const PeakUnit& unit, int threads) {
  const std::vector<Rate> measured = rates(
      threads, unit.begin, [&](int) { return unit.burst(); }, unit.end);
  std::string each;
  std::string running;
  for (const Rate& rate : measured) {
    each += fmt::format("{}{:.4g}", each.empty() ? "" : ", ", rate.per_second * 1e-9);
    running += fmt::format("{}{:.3g}", running.empty() ? "" : ", ", rate.running);
  }
  return fmt::format(
      R"({{"unit": "{}", "instruction": "{}", "gflops": {:.5g}, "per_thread": [{}], "running": [{}]}})",
      unit.name,
      unit.instruction,
      total(measured) * 1e-9,
      each,
      running);
}

/// Memory that each thread copies a part of.
class Copy {
 public:
  explicit Copy(int threads) : part_(k_copied_bytes / 2 / static_cast<std::size_t>(threads)) {
    for (std::vector<char>* side : {&from_, &to_}) {
      // Reserved first: the pages are touched, and so made, after large ones have been asked for.
      side->reserve(k_copied_bytes / 2);
      prefer_large_pages(side->data(), k_copied_bytes / 2);
      side->resize(k_copied_bytes / 2, 1);
    }
  }

  /// Copies 1 MiB of the thread's part after the other; bytes read and written.
  double operator()(int thread) {
    constexpr std::size_t k_piece = std::size_t{1} << 20;
    const std::size_t offset = static_cast<std::size_t>(thread) * part_;
    double done = 0;
    for (std::size_t at = 0; at + k_piece <= part_; at += k_piece) {
      std::memcpy(to_.data() + offset + at, from_.data() + offset + at, k_piece);
      done += 2.0 * k_piece;
    }
    return done;
  }

 private:
  std::size_t part_;
  std::vector<char> from_, to_;
};

int run(std::string_view cap) {
  backend::Isa isa = backend::cpu::detect_isa();
  if (!cap.empty()) {
    const auto wanted = backend::isa_named(cap);
    if (!wanted) {
      fmt::print(stderr, "'{}' is no instruction set\n", cap);
      return 2;
    }
    isa = std::min(isa, *wanted);
  }
  const int threads = available_processors();
  Copy copy(threads);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::string units;
    for (const PeakUnit& unit : peak_units()) {
      if (isa < unit.needs || isa > unit.until) continue;
      units += (units.empty() ? "" : ", ") + unit_json(unit, threads);
    }
    const std::vector<Rate> copied = rates(
        threads, [] {}, [&](int i) { return copy(i); }, [] {});
    fmt::print(R"({{"isa": "{}", "threads": {}, "units": [{}], "copy_gbs": {:.4g}}})"
               "\n",
               backend::name(isa),
               threads,
               units,
               total(copied) * 1e-9);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace halfstep::bench

int main(int argc, char** argv) { return halfstep::bench::run(argc > 1 ? argv[1] : ""); }

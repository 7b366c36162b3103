#include "core/parallel.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"

namespace halfstep {
namespace {

/// Puts the thread count back when a test is over.
class ThreadCountGuard {
 public:
  ThreadCountGuard() : before_(thread_count()) {}
  ~ThreadCountGuard() { set_thread_count(before_); }
  ThreadCountGuard(const ThreadCountGuard&) = delete;
  ThreadCountGuard& operator=(const ThreadCountGuard&) = delete;

 private:
  int before_;
};

using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

Ranges ranges_of(std::int64_t n, std::int64_t grain) {
  std::mutex mutex;
  Ranges ranges;
  parallel_for(n, grain, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    ranges.emplace_back(begin, end);
  });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

TEST_CASE("parallel: ranges cover everything once, in big enough pieces, the same every time") {
  const ThreadCountGuard guard;
  for (int threads : {1, 2, 3, 5}) {
    set_thread_count(threads);
    for (std::int64_t n : {0, 1, 2, 7, 64, 1000, 1001}) {
      for (std::int64_t grain : {0, 1, 3, 100, 5000}) {
        CAPTURE(threads);
        CAPTURE(n);
        CAPTURE(grain);
        const Ranges ranges = ranges_of(n, grain);
        std::int64_t covered = 0;
        for (const auto& [begin, end] : ranges) {
          CHECK(begin == covered);
          CHECK(end > begin);
          CHECK((end - begin >= grain || ranges.size() == 1));
          covered = end;
        }
        CHECK(covered == n);
        CHECK(ranges.size() <= static_cast<std::size_t>(threads));
        CHECK(ranges == ranges_of(n, grain));
      }
    }
  }
}

TEST_CASE("parallel: enough work is cut into one range per thread") {
  const ThreadCountGuard guard;
  set_thread_count(4);
  CHECK(ranges_of(4000, 1000).size() == 4);
  CHECK(ranges_of(3999, 1000).size() == 3);
  CHECK(ranges_of(999, 1000).size() == 1);
}

TEST_CASE("parallel: writes of all ranges are seen afterwards") {
  const ThreadCountGuard guard;
  set_thread_count(4);
  std::vector<int> counts(10'001, 0);
  for (int repeat = 1; repeat <= 20; ++repeat) {
    parallel_for(
        static_cast<std::int64_t>(counts.size()), 10, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) ++counts[static_cast<std::size_t>(i)];
        });
    CHECK(std::all_of(counts.begin(), counts.end(), [&](int c) { return c == repeat; }));
  }
}

TEST_CASE("parallel: a loop inside a loop still covers everything") {
  const ThreadCountGuard guard;
  set_thread_count(3);
  std::atomic<std::int64_t> sum{0};
  parallel_for(30, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      parallel_for(20, 1, [&](std::int64_t b, std::int64_t e) { sum += e - b; });
    }
  });
  CHECK(sum == 30 * 20);
}

TEST_CASE("parallel: the thread count holds in every thread, and so does the cut") {
  const ThreadCountGuard guard;
  set_thread_count(3);
  const Ranges here = ranges_of(1000, 1);
  int count_there = 0;
  Ranges there;
  std::thread([&] {
    count_there = thread_count();
    there = ranges_of(1000, 1);
  }).join();
  CHECK(count_there == 3);
  CHECK(there == here);
}

TEST_CASE("parallel: pieces come once each, and those of a part one after the other") {
  const ThreadCountGuard guard;
  for (int threads : {1, 2, 4}) {
    set_thread_count(threads);
    CAPTURE(threads);
    std::vector<std::atomic<int>> counts(1000);
    std::vector<std::atomic<int>> busy(static_cast<std::size_t>(threads));
    std::atomic<bool> alone{true};
    parallel_tasks(1000, threads, [&](std::int64_t piece, std::int64_t part) {
      if (busy[static_cast<std::size_t>(part)]++ != 0) alone = false;
      ++counts[static_cast<std::size_t>(piece)];
      --busy[static_cast<std::size_t>(part)];
    });
    CHECK(alone);
    CHECK(std::all_of(counts.begin(), counts.end(), [](const auto& c) { return c == 1; }));
  }
}

TEST_CASE("parallel: loops of several threads at once all cover everything") {
  const ThreadCountGuard guard;
  set_thread_count(3);
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int repeat = 0; repeat < 200; ++repeat) {
        parallel_for(100, 1, [&](std::int64_t begin, std::int64_t end) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(sum == 4 * 200 * 100);
}

TEST_CASE("parallel: the error of the earliest range comes out, once all others are done") {
  const ThreadCountGuard guard;
  for (const int threads : {1, 3}) {
    set_thread_count(threads);
    std::atomic<std::int64_t> seen{0};
    const auto body = [&](std::int64_t begin, std::int64_t end) {
      seen += end - begin;
      if (begin != 0 || threads == 1) throw std::runtime_error(std::to_string(begin));
    };
    CHECK_THROWS_WITH_AS(
        parallel_for(9, 1, body), std::to_string(threads == 1 ? 0 : 3).c_str(), std::runtime_error);
    CHECK(seen == 9);
  }
}

TEST_CASE("parallel: counts are at least one") {
  CHECK(thread_count() >= 1);
  CHECK(available_processors() >= 1);
  CHECK_THROWS_AS(set_thread_count(0), InternalError);
  CHECK_THROWS_AS(set_thread_count(-1), InternalError);
}

TEST_CASE("parallel: a function reference calls what it refers to") {
  int calls = 0;
  auto add = [&](int x) { return calls += x; };
  const FunctionRef<int(int)> reference(add);
  CHECK(reference(2) == 2);
  CHECK(reference(3) == 5);
  const FunctionRef<int(int)> copy = reference;
  CHECK(copy(1) == 6);
}

}  // namespace
}  // namespace halfstep

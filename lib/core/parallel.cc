#include "core/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>

#include "core/cgroup.h"
#include "core/error.h"
#include "core/thread_pool.h"

namespace halfstep {
namespace {

std::atomic<int> g_thread_count{0};

}  // namespace

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::ceil(std::min<double>(count, cgroup_processors().value_or(count))));
}

int thread_count() {
  static const int detected = std::min(available_processors(), k_max_threads);
  const int n = g_thread_count.load();
  return n > 0 ? n : detected;
}

void set_thread_count(int n) {
  require(n >= 1, "thread count {}", n);
  g_thread_count.store(std::min(n, k_max_threads));
}

void parallel_for(std::int64_t n,
                  std::int64_t grain,
                  FunctionRef<void(std::int64_t, std::int64_t)> body) {
  if (n <= 0) return;
  const std::int64_t ranges =
      std::clamp<std::int64_t>(n / std::max<std::int64_t>(grain, 1), 1, thread_count());
  if (ranges == 1 || team_member().in_team) {
    body(0, n);
    return;
  }
  const int size = static_cast<int>(ranges);
  std::mutex mutex;  // of the next two
  int failed = size;
  std::exception_ptr failure;
  const auto run_range = [&](int i) {
    try {
      body(n * i / ranges, n * (i + 1) / ranges);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (i < failed) failure = std::current_exception();
      failed = std::min(failed, i);
    }
  };
  if (!run_team(size, Team::independent, run_range)) {
    for (int i = 0; i < size; ++i) run_range(i);
  }
  if (failure) std::rethrow_exception(failure);
}

void parallel_tasks(std::int64_t n,
                    std::int64_t workers,
                    FunctionRef<void(std::int64_t task, std::int64_t worker)> body) {
  std::atomic<std::int64_t> next{0};
  parallel_for(workers, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) {
      for (std::int64_t i = next.fetch_add(1); i < n; i = next.fetch_add(1)) body(i, worker);
    }
  });
}

}  // namespace halfstep

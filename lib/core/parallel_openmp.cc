#include <omp.h>

#include <algorithm>
#include <atomic>

#include "core/error.h"
#include "core/parallel.h"

namespace halfstep {
namespace {

// OpenMP keeps its own count per thread; the cut of a loop must not depend on who asks.
std::atomic<int> g_thread_count{0};

}  // namespace

int thread_count() {
  static const int detected = available_processors();
  const int n = g_thread_count.load();
  return n > 0 ? n : detected;
}

void set_thread_count(int n) {
  require(n >= 1, "thread count {}", n);
  g_thread_count.store(n);
  omp_set_dynamic(0);
  omp_set_num_threads(n);
}

void parallel_for(std::int64_t n,
                  std::int64_t grain,
                  FunctionRef<void(std::int64_t, std::int64_t)> body) {
  if (n <= 0) return;
  const std::int64_t parts =
      std::clamp<std::int64_t>(n / std::max<std::int64_t>(grain, 1), 1, thread_count());
  if (parts == 1 || omp_in_parallel()) {
    body(0, n);
    return;
  }
#pragma omp parallel for schedule(static, 1) num_threads(static_cast <int>(parts))
  for (std::int64_t part = 0; part < parts; ++part) {
    body(n * part / parts, n * (part + 1) / parts);
  }
}

}  // namespace halfstep

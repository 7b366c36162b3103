#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"

namespace halfstep {
namespace {

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
}

void parallel_for(std::int64_t n,
                  std::int64_t grain,
                  FunctionRef<void(std::int64_t, std::int64_t)> body) {
  if (n <= 0) return;
  const std::int64_t parts =
      std::clamp<std::int64_t>(n / std::max<std::int64_t>(grain, 1), 1, thread_count());
  std::vector<std::thread> threads;
  for (std::int64_t part = 1; part < parts; ++part) {
    threads.emplace_back([=] { body(n * part / parts, n * (part + 1) / parts); });
  }
  body(0, n / parts);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace halfstep

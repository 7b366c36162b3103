// The rate of a unit on several threads at once.

#include <chrono>
#include <future>
#include <numeric>
#include <thread>
#include <vector>

#include "backend/cpu/processor.h"
#include "core/thread_pool.h"

namespace halfstep::backend::cpu {

double register_rate(const PeakUnit& unit, int threads) {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds k_length{5e-3};
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::vector<std::jthread> workers;
  // Destroyed before the workers are joined: where the system refuses a thread, the others end too.
  std::promise<void> all_started;
  const std::shared_future<void> start_together(all_started.get_future());
  for (double& rate : rates) {
    workers.push_back(start_thread([&, start_together] {
      unit.begin();
      start_together.wait();
      const auto start = std::chrono::steady_clock::now();
      Seconds taken{0};
      double flops = 0;
      while (taken < k_length) {
        flops += unit.burst();
        taken = std::chrono::steady_clock::now() - start;
      }
      rate = flops / taken.count();
      unit.end();
    }));
  }
  all_started.set_value();
  workers.clear();
  return std::reduce(rates.begin(), rates.end());
}

}  // namespace halfstep::backend::cpu

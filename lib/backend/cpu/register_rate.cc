// The rate of a unit on several threads at once.

#include <barrier>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "backend/cpu/processor.h"

namespace halfstep::backend::cpu {

double register_rate(const PeakUnit& unit, int threads) {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds k_length{5e-3};
  std::vector<double> rates(static_cast<std::size_t>(threads));
  std::barrier ready(threads);
  std::vector<std::jthread> workers;
  for (double& rate : rates) {
    workers.emplace_back([&] {
      unit.begin();
      ready.arrive_and_wait();
      const auto start = std::chrono::steady_clock::now();
      Seconds taken{0};
      double flops = 0;
      while (taken < k_length) {
        flops += unit.burst();
        taken = std::chrono::steady_clock::now() - start;
      }
      rate = flops / taken.count();
      unit.end();
    });
  }
  workers.clear();
  return std::reduce(rates.begin(), rates.end());
}

}  // namespace halfstep::backend::cpu

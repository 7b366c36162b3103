#include "backend/cuda/vendor/real/device.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace halfstep::backend::cuda::real {
namespace {

constexpr int k_warm_ups = 3;
constexpr int k_runs = 11;

struct DestroyEvent {
  void operator()(CUevent_st* event) const { cudaEventDestroy(event); }
};

std::unique_ptr<CUevent_st, DestroyEvent> make_event() {
  cudaEvent_t raw = nullptr;
  check(cudaEventCreate(&raw), "cudaEventCreate");
  return std::unique_ptr<CUevent_st, DestroyEvent>(raw);
}

/// Median time of one run, in milliseconds.
float time_of(cudaStream_t stream, const std::function<void()>& run) {
  const auto begin = make_event();
  const auto end = make_event();
  for (int i = 0; i < k_warm_ups; ++i) run();
  std::vector<float> times;
  for (int i = 0; i < k_runs; ++i) {
    check(cudaEventRecord(begin.get(), stream), "cudaEventRecord");
    run();
    check(cudaEventRecord(end.get(), stream), "cudaEventRecord");
    check(cudaEventSynchronize(end.get()), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime");
    times.push_back(milliseconds);
  }
  std::nth_element(times.begin(), times.begin() + k_runs / 2, times.end());
  return times[k_runs / 2];
}

}  // namespace

Scratch::Scratch(std::size_t bytes) {
  if (bytes > 0) check(cudaMalloc(&address_, bytes), "cudaMalloc");
}

Scratch::~Scratch() {
  if (address_ != nullptr) cudaFree(address_);
}

std::size_t fastest(Device& device, const std::vector<std::function<void()>>& candidates) {
  std::size_t best = candidates.size();
  float best_time = std::numeric_limits<float>::infinity();
  std::string last_error;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    try {
      const float time = time_of(device.stream, candidates[i]);
      if (time < best_time) {
        best = i;
        best_time = time;
      }
    } catch (const VendorError& e) {
      last_error = e.what();
    }
  }
  if (best == candidates.size()) throw VendorError(Failure::failed, last_error);
  return best;
}

std::size_t choose(Device& device,
                   const std::string& key,
                   std::size_t count,
                   const std::function<std::size_t()>& measure) {
  if (device.autotune == Autotune::heuristic || count < 2) return 0;
  if (const auto known = device.choices.find(key); known && *known < count) return *known;
  const std::size_t best = measure();
  device.choices.remember(key, best);
  return best;
}

}  // namespace halfstep::backend::cuda::real

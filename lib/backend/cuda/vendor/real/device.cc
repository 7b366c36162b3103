#include "backend/cuda/vendor/real/device.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "core/dispatch.h"
#include "core/philox.h"

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

/// Median time of one run, in milliseconds; `flush` is enqueued before each.
float time_of(cudaStream_t stream,
              const std::function<void()>& flush,
              const std::function<void()>& run) {
  const auto begin = make_event();
  const auto end = make_event();
  for (int i = 0; i < k_warm_ups; ++i) run();
  std::vector<float> times;
  for (int i = 0; i < k_runs; ++i) {
    flush();
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

Scratch::Scratch(std::size_t bytes) : bytes_(bytes) {
  if (bytes > 0) check(cudaMalloc(&address_, bytes), "cudaMalloc");
}

Scratch::~Scratch() {
  if (address_ != nullptr) cudaFree(address_);
}

void fill_repeated(const Device& device,
                   const TrialOperand& operand,
                   std::span<const float> values) {
  dispatch_floating(operand.dtype, [&]<class T>(Type<T>) {
    std::vector<T> converted;
    converted.reserve(values.size());
    for (const float value : values) converted.push_back(static_cast<T>(value));
    const std::size_t block = converted.size() * sizeof(T);
    for (std::size_t at = 0; at < operand.memory.bytes(); at += block) {
      check(cudaMemcpyAsync(static_cast<std::byte*>(operand.address()) + at,
                            converted.data(),
                            std::min(block, operand.memory.bytes() - at),
                            cudaMemcpyHostToDevice,
                            device.stream),
            "cudaMemcpyAsync");
    }
    // `converted` must outlive the copies.
    check(cudaStreamSynchronize(device.stream), "cudaStreamSynchronize");
  });
}

void fill_random(const Device& device, std::initializer_list<const TrialOperand*> operands) {
  constexpr std::size_t k_values = 1 << 16;
  RandomStream random(1, 0);
  std::vector<float> values(k_values);
  for (float& value : values) value = 2 * random.uniform() - 1;
  for (const TrialOperand* operand : operands) fill_repeated(device, *operand, values);
}

void fill_nan(const Device& device, std::initializer_list<const TrialOperand*> operands) {
  for (const TrialOperand* operand : operands) {
    if (operand->memory.bytes() == 0) continue;
    // All bits set are a NaN in each floating dtype.
    check(cudaMemsetAsync(operand->address(), 0xff, operand->memory.bytes(), device.stream),
          "cudaMemsetAsync");
  }
}

double element(const Device& device, const TrialOperand& operand, std::int64_t i) {
  return dispatch_floating(operand.dtype, [&]<class T>(Type<T>) {
    T value{};
    check(cudaMemcpyAsync(&value,
                          static_cast<const T*>(operand.address()) + i,
                          sizeof value,
                          cudaMemcpyDeviceToHost,
                          device.stream),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(device.stream), "cudaStreamSynchronize");
    return static_cast<double>(static_cast<Compute<T>>(value));
  });
}

bool is_nan(const Device& device, const TrialOperand& operand) {
  const auto last =
      static_cast<std::int64_t>(operand.memory.bytes() / size_bytes(operand.dtype)) - 1;
  return std::isnan(element(device, operand, 0)) && std::isnan(element(device, operand, last));
}

std::size_t fastest(Device& device, const std::vector<std::function<void()>>& candidates) {
  std::size_t best = candidates.size();
  float best_time = std::numeric_limits<float>::infinity();
  std::string last_error;
  const Scratch cache(2 * device.l2_bytes);
  const auto flush = [&] {
    if (cache.bytes() == 0) return;
    check(cudaMemsetAsync(cache.address(), 0, cache.bytes(), device.stream), "cudaMemsetAsync");
  };
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    try {
      const float time = time_of(device.stream, flush, candidates[i]);
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
  std::size_t best = 0;
  try {
    best = measure();
  } catch (const VendorError& error) {
    if (error.failure() != Failure::out_of_memory) throw;
  }
  device.choices.remember(key, best);
  return best;
}

}  // namespace halfstep::backend::cuda::real

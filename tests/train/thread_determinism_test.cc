// Equal bits for equal thread counts, whatever else runs on the processors.

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <ostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/parallel.h"
#include "train/fixture.h"

namespace halfstep::train {
namespace {

constexpr std::string_view k_dense = R"(
    - {type: flatten}
    - {name: hidden, type: dense, units: 256, activation: relu}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";
constexpr std::string_view k_conv = R"(
    - {name: conv1, type: conv2d, filters: 16, kernel_size: 3, activation: relu}
    - {name: conv2, type: conv2d, filters: 16, kernel_size: 3, activation: relu}
    - {type: max_pooling2d}
    - {type: flatten}
    - {name: logits, type: dense, units: 10}
    - {type: softmax, dtype: float32}
)";

/// Threads that keep processors busy.
class BusyThreads {
 public:
  explicit BusyThreads(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        while (!stop_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~BusyThreads() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

/// Of all variables after three steps.
std::string state_hash(std::string_view layers, std::string_view policy, int threads) {
  TinyRun tiny;
  tiny.layers = layers;
  tiny.data = k_unsplit_digits;
  tiny.precision = fmt::format("{{policy: {}}}", policy);
  tiny.training = "{epochs: 1, batch_size: 64}";
  return Run(tiny.spec(), {}, digits(), backend::cpu_backend(threads)).finish().state_hash;
}

}  // namespace

TEST_CASE("run: the same threads give the same bits, beside busy processors too" *
          doctest::test_suite("slow")) {
  for (std::string_view layers : {k_dense, k_conv}) {
    for (std::string_view policy : {"float32", "mixed_bfloat16", "mixed_float16"}) {
      for (int threads = 1; threads <= 4; ++threads) {
        CAPTURE(layers);
        CAPTURE(policy);
        CAPTURE(threads);
        const std::string expected = state_hash(layers, policy, threads);
        CHECK(state_hash(layers, policy, threads) == expected);
        const BusyThreads busy(2);
        CHECK(state_hash(layers, policy, threads) == expected);
      }
    }
  }
  (void)backend::cpu_backend(1);
}

}  // namespace halfstep::train

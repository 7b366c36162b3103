// The execution model for kernels on the host: the semantics of a GPU, and errors where a GPU would
// hang.

#include <doctest/doctest.h>

#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "backend/cuda/kernels/shim/compat.h"

namespace halfstep::testing {
namespace {

using backend::cuda::kernels::Grid;
using backend::cuda::kernels::LaunchError;
namespace own = backend::cuda::kernels;
namespace shim = backend::cuda::kernels::shim;

__global__ void number_kernel(std::int64_t* y) {
  const std::int64_t i = (own::row() * own::blocks() + own::block()) * own::threads();
  y[i + own::thread()] += 1;
}

/// Every thread gets the sum of its warp's numbers.
__global__ void shuffle_kernel(const int* x, int* sums) {
  const unsigned i = own::thread();
  int sum = x[i];
  for (unsigned lanes = 16; lanes > 0; lanes /= 2) sum += own::shuffle_xor(sum, lanes);
  sums[i] = sum;
}

/// y[block] = the values that the block's threads wrote to shared memory, in reverse.
__global__ void reverse_kernel(const int* x, int* y) {
  HALFSTEP_SHARED(int, values, 128);
  HALFSTEP_SHARED(double, others, 1);
  const std::int64_t i = own::block() * own::threads() + own::thread();
  values[own::thread()] = x[i];
  if (own::thread() == 0) others[0] = 0.5;
  own::sync_block();
  y[i] = values[own::threads() - 1 - own::thread()] + static_cast<int>(others[0] * 2);
}

/// Reads shared memory that was not written.
__global__ void unwritten_kernel(float* y) {
  HALFSTEP_SHARED(float, values, 64);
  y[own::thread()] = values[own::thread()];
  own::sync_block();
  values[own::thread()] = 1;
}

__global__ void half_block_waits_kernel() {
  if (own::thread() < own::threads() / 2) own::sync_block();
}

__global__ void one_lane_is_missing_kernel(int* y) {
  if (own::thread() % 32 == 5) return;
  y[own::thread()] = own::shuffle_xor(1, 1);
}

__global__ void warps_disagree_kernel(int* y) {
  if (own::thread() == 0) own::sync_block();
  y[own::thread()] = own::shuffle_xor(1, 1);
  if (own::thread() != 0) own::sync_block();
}

__global__ void greedy_kernel(float* y) {
  HALFSTEP_SHARED(float, values, 13'000);
  *y = values[0];
}

std::string refusal(void (*kernel)(), const Grid& grid) {
  try {
    own::launch(kernel, grid, nullptr);
  } catch (const LaunchError& error) {
    return error.what();
  }
  return {};
}

template <class T>
std::string refusal(void (*kernel)(T*), const Grid& grid) {
  std::vector<T> y(1024);
  try {
    own::launch(kernel, grid, nullptr, y.data());
  } catch (const LaunchError& error) {
    return error.what();
  }
  return {};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("execution shim: each thread of a grid runs once, with fibers or without") {
  for (const bool cooperates : {false, true}) {
    CAPTURE(cooperates);
    std::vector<std::int64_t> y(3 * 5 * 64, 0);
    const Grid grid{.blocks = 5, .rows = 3, .threads = 64, .cooperates = cooperates};
    own::launch(number_kernel, grid, nullptr, y.data());
    CHECK(y == std::vector<std::int64_t>(y.size(), 1));
  }
  own::launch(number_kernel, Grid{.blocks = 0}, nullptr, static_cast<std::int64_t*>(nullptr));
}

TEST_CASE("execution shim: shuffles stay in their warp, in any order of the threads") {
  for (const shim::Order order : {shim::Order::forward, shim::Order::backward}) {
    shim::set_order(order);
    std::vector<int> x(96), sums(96);
    std::iota(x.begin(), x.end(), 0);
    own::launch(shuffle_kernel,
                Grid{.blocks = 1, .threads = 96, .cooperates = true},
                nullptr,
                x.data(),
                sums.data());
    shim::set_order(shim::Order::forward);
    for (int i = 0; i < 96; ++i) {
      CAPTURE(i);
      const int first = i / 32 * 32;
      CHECK(sums[static_cast<std::size_t>(i)] == 32 * first + 31 * 32 / 2);
    }
  }
}

TEST_CASE("execution shim: a block's threads share memory that begins full of NaN") {
  std::vector<int> x(4 * 128), y(4 * 128);
  std::iota(x.begin(), x.end(), 0);
  own::launch(reverse_kernel,
              Grid{.blocks = 4, .threads = 128, .cooperates = true},
              nullptr,
              x.data(),
              y.data());
  for (std::size_t i = 0; i < y.size(); ++i) {
    CHECK(y[i] == x[i / 128 * 128 + 127 - i % 128] + 1);
  }
  std::vector<float> seen(64);
  own::launch(
      unwritten_kernel, Grid{.blocks = 3, .threads = 64, .cooperates = true}, nullptr, seen.data());
  for (float value : seen) CHECK(value != value);
}

TEST_CASE("execution shim: what would hang a GPU is told") {
  const Grid two_warps{.blocks = 2, .threads = 64, .cooperates = true};
  CHECK(has(refusal(half_block_waits_kernel, two_warps), "32 at the block's barrier"));
  CHECK(has(refusal(one_lane_is_missing_kernel, two_warps), "62 at their warp's, 2 have ended"));
  CHECK(has(refusal(warps_disagree_kernel, two_warps), "threads wait for others"));
  CHECK(has(refusal(greedy_kernel, two_warps), "more than 48 KiB"));
  // A discarded launch does not disturb the next one.
  std::vector<std::int64_t> y(64, 0);
  own::launch(
      number_kernel, Grid{.blocks = 1, .threads = 64, .cooperates = true}, nullptr, y.data());
  CHECK(y == std::vector<std::int64_t>(64, 1));
}

TEST_CASE("execution shim: a kernel that waits must say that it cooperates") {
  const Grid plain{.blocks = 1, .threads = 64};
  CHECK(has(refusal(half_block_waits_kernel, plain), "does not cooperate"));
  CHECK(has(refusal(one_lane_is_missing_kernel, plain), "does not cooperate"));
  CHECK(has(refusal(unwritten_kernel, plain), "does not cooperate"));
}

TEST_CASE("execution shim: grids that no device runs are refused") {
  CHECK(has(refusal(half_block_waits_kernel, Grid{.blocks = 1, .threads = 48}), "48 threads"));
  CHECK(has(refusal(half_block_waits_kernel, Grid{.blocks = 1, .threads = 2048}), "2048"));
  CHECK(has(refusal(half_block_waits_kernel, Grid{.blocks = 1, .rows = 70'000}), "70000"));
}

}  // namespace halfstep::testing

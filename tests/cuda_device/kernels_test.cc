// Every own kernel against the reference in float64 (in the same dtype where there is none),
// outputs full of garbage before.

#include "support/kernels.h"

#include <doctest/doctest.h>

#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "backend/cuda/kernels/cast.h"
#include "cuda_device/device.h"
#include "cuda_device/plugin_kernels.h"

namespace halfstep::testing {
namespace {

backend::Capabilities here() {
  return {.compute_capability = device().device().compute_capability};
}

}  // namespace

TEST_CASE("own kernels: each gives what the reference gives in float64") {
  const std::vector<OpCase> cases = all_kernel_cases();
  std::map<std::string_view, int> taken;
  for (const backend::Kernel& kernel : plugin_kernels("cuda/")) {
    taken[kernel.op] += check_against_reference(kernel, here(), cases);
  }
  for (const auto& [op, count] : taken) {
    CAPTURE(op);
    CHECK(count > 0);
  }
  CHECK(tickets_are_zero());
}

TEST_CASE("own kernels: tensors need no more alignment than their elements" *
          doctest::test_suite("slow")) {
  const std::vector<OpCase> cases = all_kernel_cases();
  for (const Begin begin : {Begin::behind_one_element, Begin::behind_16_bytes}) {
    place_tensors(begin);
    for (const backend::Kernel& kernel : plugin_kernels("cuda/")) {
      check_against_reference(kernel, here(), cases);
    }
  }
  place_tensors(Begin::aligned);
}

TEST_CASE("own kernels: a copy has all of its longer rows, more than a grid has threads too") {
  namespace own = backend::cuda::kernels;
  constexpr std::int64_t k_rows = 600'000, k_columns = 5, k_padded = 8;
  Tensor x(DType::float32, {k_rows, k_columns}), y(DType::bfloat16, {k_rows, k_padded});
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.as<float>()[i] = static_cast<float>(i % 251 + 1);
  const OnDevice from(x), to(y.bytes());
  own::cast_rows(device().stream(),
                 {.to = y.dtype(),
                  .x = static_cast<const float*>(from.address()),
                  .y = to.address(),
                  .rows = k_rows,
                  .columns = k_columns,
                  .padded = k_padded});
  to.read(y);
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t row = i / k_padded, column = i % k_padded;
    const float want = column < k_columns ? x.as<float>()[row * k_columns + column] : 0.0F;
    wrong += static_cast<float>(y.as<bfloat16>()[i]) == want ? 0 : 1;
  }
  CHECK(wrong == 0);
}

// For tools that slow each kernel down a hundredfold: a few cases of the kernels whose threads
// share memory, and of those that count their blocks.
TEST_CASE("sanitized kernels: sums, softmax, normalization, tickets" * doctest::skip()) {
  constexpr std::size_t k_cases = 3;  // of an op
  const std::set<std::string_view> sanitized{"cuda/all_finite",
                                             "cuda/batch_moments",
                                             "cuda/batch_norm",
                                             "cuda/batch_norm_grad",
                                             "cuda/bias_grad",
                                             "cuda/convolution",
                                             "cuda/cross_entropy",
                                             "cuda/filter_gradient",
                                             "cuda/fused_elementwise",
                                             "cuda/keep_state",
                                             "cuda/layer_norm_grad",
                                             "cuda/next_batch",
                                             "cuda/reduce",
                                             "cuda/softmax",
                                             "cuda/softmax_loss",
                                             "cuda/squared_norms",
                                             "cuda/sparse_cross_entropy"};
  std::map<std::string, std::size_t> taken;
  std::vector<OpCase> cases;
  for (const OpCase& one : all_kernel_cases()) {
    if (taken[one.op]++ < k_cases) cases.push_back(one);
  }
  int run = 0;
  for (const backend::Kernel& kernel : plugin_kernels("cuda/")) {
    if (sanitized.contains(kernel.name)) run += check_against_reference(kernel, here(), cases);
  }
  CHECK(run > static_cast<int>(sanitized.size()));
  CHECK(tickets_are_zero());
}

TEST_CASE("sanitized kernels: attention in several tiles" * doctest::skip()) {
  std::vector<OpCase> cases = all_kernel_cases();
  std::erase_if(cases, [](const OpCase& c) { return c.name.find("blocks") == std::string::npos; });
  for (const backend::Kernel& kernel : plugin_kernels("cuda/attention")) {
    CHECK(check_against_reference(kernel, here(), cases) > 10);
  }
}

}  // namespace halfstep::testing

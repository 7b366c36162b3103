// Every own kernel against the reference in float64 (in the same dtype where there is none),
// outputs full of garbage before.

#include "support/kernels.h"

#include <doctest/doctest.h>

#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "cuda_device/device.h"
#include "cuda_device/kernel_rows.h"

namespace halfstep::testing {

TEST_CASE("own kernels: each gives what the reference gives in float64") {
  const std::vector<OpCase> cases = all_kernel_cases();
  std::map<std::string_view, int> taken;
  for (const backend::Kernel& kernel : cuda_kernel_rows()) {
    taken[kernel.op] += check_against_reference(kernel, {}, cases);
  }
  for (const auto& [op, count] : taken) {
    CAPTURE(op);
    CHECK(count > 0);
  }
  CHECK(tickets_are_zero());
}

TEST_CASE("own kernels: tensors need no more alignment than their elements") {
  const std::vector<OpCase> cases = all_kernel_cases();
  misalign(true);
  for (const backend::Kernel& kernel : cuda_kernel_rows()) {
    check_against_reference(kernel, {}, cases);
  }
  misalign(false);
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
  for (const backend::Kernel& kernel : cuda_kernel_rows()) {
    if (sanitized.contains(kernel.name)) run += check_against_reference(kernel, {}, cases);
  }
  CHECK(run > static_cast<int>(sanitized.size()));
  CHECK(tickets_are_zero());
}

TEST_CASE("sanitized kernels: attention in several tiles" * doctest::skip()) {
  std::vector<OpCase> cases = all_kernel_cases();
  std::erase_if(cases, [](const OpCase& c) { return c.name.find("blocks") == std::string::npos; });
  for (const backend::Kernel& kernel : attention_rows()) {
    CHECK(check_against_reference(kernel, {}, cases) > 10);
  }
}

}  // namespace halfstep::testing

// Every own kernel against the reference in float64 (in the same dtype where there is none),
// outputs full of garbage before.

#include "support/kernels.h"

#include <doctest/doctest.h>

#include <map>
#include <ostream>

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

}  // namespace halfstep::testing

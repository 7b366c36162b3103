// Every own kernel on the execution shim: against the reference in float64 (in the same dtype where
// there is none), outputs full of garbage before.

#include "backend/cpu/kernels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <ostream>

#include "backend/cuda/kernels/shim/cpu.h"
#include "kernel_rows.h"
#include "support/kernels.h"
#include "support/tolerance.h"

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
}

TEST_CASE("own kernels: the order in which threads take their turns changes no bit") {
  namespace shim = backend::cuda::kernels::shim;
  const std::vector<OpCase> cases = all_kernel_cases();
  for (const backend::Kernel& kernel : cuda_kernel_rows()) {
    const OneKernel one(kernel, {});
    for (const OpCase& c : cases) {
      if (c.op != kernel.op) continue;
      BuiltCase forward = build(c, dtypes_of(c).front());
      BuiltCase backward = build(c, dtypes_of(c).front());
      CAPTURE(c.name);
      const std::vector<Tensor> want = one.run(forward);
      shim::set_order(shim::Order::backward);
      const std::vector<Tensor> got = one.run(backward);
      shim::set_order(shim::Order::forward);
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        const Comparison same = compare_bits(got[i].view(), want[i].view());
        CHECK_MESSAGE(same, same.text);
      }
    }
  }
}

}  // namespace halfstep::testing

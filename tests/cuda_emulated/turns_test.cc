// Results do not depend on the order of threads and blocks; only the emulated device can vary it.

#include <doctest/doctest.h>

#include <ostream>

#include "backend/cuda/kernels/shim/cpu.h"
#include "cuda_device/plugin_kernels.h"
#include "support/kernels.h"
#include "support/tolerance.h"

namespace halfstep::testing {

TEST_CASE("own kernels: the order in which threads take their turns changes no bit") {
  namespace shim = backend::cuda::kernels::shim;
  const std::vector<OpCase> cases = all_kernel_cases();
  for (const backend::Kernel& kernel : plugin_kernels("cuda/")) {
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

// Recurrent layers by the plugin's code, matmuls and own kernels together, against the reference.

#include <doctest/doctest.h>

#include <ostream>

#include "backend/cuda/rows.h"
#include "cuda_device/kernel_rows.h"
#include "support/kernels.h"

namespace halfstep::testing {

TEST_CASE("recurrent layers: matmuls and gates give what the reference gives") {
  constexpr auto k_family = backend::cuda::plugin::recurrent_rows;
  const auto rows = k_family();
  for (backend::Kernel kernel : backend::cuda::rows()) {
    if (kernel.name == rows[0].name) {
      kernel.prepare = prepare_row<k_family, 0>;
    } else if (kernel.name == rows[1].name) {
      kernel.prepare = prepare_row<k_family, 1>;
    } else {
      continue;
    }
    CAPTURE(kernel.op);
    const backend::Capabilities here{.compute_capability = device().device().capability};
    CHECK(check_against_reference(kernel, here, recurrent_cases()) > 80);
  }
}

}  // namespace halfstep::testing

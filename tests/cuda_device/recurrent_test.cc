// Recurrent layers by the plugin's code, matmuls and own kernels together, against the reference.

#include <doctest/doctest.h>

#include <ostream>

#include "cuda_device/device.h"
#include "cuda_device/plugin_kernels.h"
#include "support/kernels.h"

namespace halfstep::testing {

TEST_CASE("recurrent layers: matmuls and gates give what the reference gives") {
  const backend::Capabilities here{.compute_capability = device().device().compute_capability};
  int kernels = 0;
  for (const backend::Kernel& kernel : plugin_kernels("")) {
    if (!kernel.op.starts_with("RNN")) continue;
    CAPTURE(kernel.name);
    const bool by_library = kernel.name.starts_with("cublaslt/");
    CHECK(check_against_reference(kernel, here, recurrent_cases()) > (by_library ? 80 : 20));
    ++kernels;
  }
  CHECK(kernels == 4);
}

}  // namespace halfstep::testing

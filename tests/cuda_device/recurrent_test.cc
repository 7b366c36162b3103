// Recurrent layers by the plugin's code, matmuls and own kernels together, against the reference.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <ostream>

#include "backend/cuda/rows.h"
#include "cuda_device/kernel_rows.h"
#include "support/kernels.h"

namespace halfstep::testing {

TEST_CASE("recurrent layers: matmuls and gates give what the reference gives") {
  constexpr auto k_family = backend::cuda::plugin::recurrent_rows;
  constexpr std::array<decltype(backend::Kernel::prepare), 4> k_prepare{prepare_row<k_family, 0>,
                                                                        prepare_row<k_family, 1>,
                                                                        prepare_row<k_family, 2>,
                                                                        prepare_row<k_family, 3>};
  const auto rows = k_family();
  REQUIRE(rows.size() == k_prepare.size());
  for (backend::Kernel kernel : backend::cuda::rows()) {
    const auto row = std::ranges::find(rows, kernel.name, &backend::cuda::plugin::Row::name);
    if (row == rows.end()) continue;
    kernel.prepare = k_prepare[static_cast<std::size_t>(row - rows.begin())];
    CAPTURE(kernel.name);
    const backend::Capabilities here{.compute_capability = device().device().capability};
    const bool by_library = kernel.name.starts_with("cublaslt/");
    CHECK(check_against_reference(kernel, here, recurrent_cases()) > (by_library ? 80 : 20));
  }
}

}  // namespace halfstep::testing

#include "backend/cuda/rows.h"
#include "cuda_device/kernel_rows.h"

namespace halfstep::testing {

std::vector<backend::Kernel> attention_rows() {
  constexpr auto k_family = backend::cuda::plugin::attention_rows;
  const auto rows = k_family();
  std::vector<backend::Kernel> kernels;
  for (backend::Kernel kernel : backend::cuda::rows()) {
    if (kernel.name != rows[0].name && kernel.name != rows[1].name) continue;
    kernel.prepare =
        kernel.name == rows[0].name ? prepare_row<k_family, 0> : prepare_row<k_family, 1>;
    kernels.push_back(kernel);
  }
  return kernels;
}

}  // namespace halfstep::testing

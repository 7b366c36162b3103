#include "kernel_rows.h"

#include <algorithm>
#include <iterator>

namespace halfstep::testing {

std::vector<backend::Kernel> cuda_kernel_rows() {
  std::vector<backend::Kernel> all;
  for (auto family : {elementwise_rows, training_rows, image_rows, array_rows}) {
    const std::vector<backend::Kernel> rows = family();
    std::copy(rows.begin(), rows.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace halfstep::testing

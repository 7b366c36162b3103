#include "backend/cpu/kernels.h"
#include "backend/cpu/vector/rows.h"

namespace halfstep::backend::cpu {

std::span<const Kernel> vector_kernels() {
  static const std::vector<Kernel> k_rows = [] {
    std::vector<Kernel> all;
    for (const auto& rows : {vector::elementwise_kernels(),
                             vector::finite_kernels(),
                             vector::map_kernels(),
                             vector::norm_kernels(),
                             vector::pool_kernels(),
                             vector::random_kernels(),
                             vector::reduce_kernels(),
                             vector::softmax_kernels(),
                             vector::update_kernels()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return k_rows;
}

}  // namespace halfstep::backend::cpu

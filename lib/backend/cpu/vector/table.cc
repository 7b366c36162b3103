#include "backend/cpu/kernels.h"
#include "backend/cpu/vector/kernels.h"
#include "core/concatenate.h"

namespace halfstep::backend::cpu {

std::span<const Kernel> vector_kernels() {
  static const std::vector<Kernel> k_kernels = concatenate<Kernel>({vector::elementwise_kernels(),
                                                                    vector::finite_kernels(),
                                                                    vector::layer_norm_kernels(),
                                                                    vector::map_kernels(),
                                                                    vector::norm_kernels(),
                                                                    vector::pool_kernels(),
                                                                    vector::random_kernels(),
                                                                    vector::reduce_kernels(),
                                                                    vector::softmax_kernels(),
                                                                    vector::update_kernels()});
  return k_kernels;
}

}  // namespace halfstep::backend::cpu

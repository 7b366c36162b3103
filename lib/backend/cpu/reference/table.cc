#include "backend/cpu/kernels.h"
#include "backend/cpu/reference/reference.h"
#include "core/concatenate.h"

namespace halfstep::backend::cpu {

std::span<const Kernel> reference_kernels() {
  static const std::vector<Kernel> k_all = [] {
    std::vector<Kernel> all = concatenate<Kernel>({ahead_kernels(),
                                                   array_kernels(),
                                                   attention_reference_kernels(),
                                                   conv_kernels(),
                                                   elementwise_kernels(),
                                                   fused_kernels(),
                                                   image_kernels(),
                                                   matmul_kernels(),
                                                   norm_kernels(),
                                                   packed_operand_kernels(),
                                                   pool_kernels(),
                                                   random_kernels(),
                                                   rnn_kernels(),
                                                   reduce_kernels(),
                                                   scaling_kernels(),
                                                   select_kernels(),
                                                   softmax_kernels(),
                                                   state_kernels(),
                                                   update_kernels()});
    for (Kernel& row : all) row.reference = true;
    return all;
  }();
  return k_all;
}

}  // namespace halfstep::backend::cpu

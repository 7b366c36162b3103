#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn/rows.h"

namespace halfstep::backend::cpu {

std::span<const Kernel> onednn_kernels() {
  static const std::vector<Kernel> k_rows = [] {
    std::vector<Kernel> all;
    for (const auto& rows : {onednn::conv_kernels(), onednn::matmul_kernels()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return k_rows;
}

}  // namespace halfstep::backend::cpu

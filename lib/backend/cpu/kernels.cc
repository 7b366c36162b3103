#include "backend/cpu/kernels.h"

namespace halfstep::backend::cpu {

std::span<const Kernel> all_kernels() {
  static const std::vector<Kernel> k_all = [] {
    std::vector<Kernel> all;
    for (const auto rows :
         {packed_kernels(), onednn_kernels(), vector_kernels(), reference_kernels()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return k_all;
}

}  // namespace halfstep::backend::cpu

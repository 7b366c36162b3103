#include "backend/cpu/onednn/onednn.h"

#include <fmt/format.h>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn/api.h"
#include "core/concatenate.h"

namespace halfstep::backend {

std::string onednn_version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

namespace cpu {

std::span<const Kernel> onednn_kernels() {
  static const std::vector<Kernel> k_kernels =
      concatenate<Kernel>({onednn::conv_kernels(), onednn::matmul_kernels()});
  return k_kernels;
}

namespace onednn {

void limit(Isa isa) {
  const dnnl::cpu_isa cap = [&] {
    switch (isa) {
      case Isa::baseline:
        return dnnl::cpu_isa::sse41;
      case Isa::avx2:
        return dnnl::cpu_isa::avx2;
      case Isa::avx512:
        return dnnl::cpu_isa::avx512_core_vnni;
      case Isa::avx512_bf16:
        return dnnl::cpu_isa::avx512_core_bf16;
      case Isa::amx:
        break;
    }
    return unlimited_isa();
  }();
  // Fails once a primitive exists; effective_isa() returns the set in effect in any case.
  (void)dnnl_set_max_cpu_isa(static_cast<dnnl_cpu_isa_t>(cap));
}

Isa effective_isa() {
  // oneDNN numbers its instruction sets by bits: a set has all bits of those it includes.
  const auto bits = static_cast<unsigned>(dnnl_get_effective_cpu_isa());
  const auto has = [&](dnnl_cpu_isa_t isa) {
    return (bits & static_cast<unsigned>(isa)) == static_cast<unsigned>(isa);
  };
  if (has(dnnl_cpu_isa_avx512_core_amx)) return Isa::amx;
  if (has(dnnl_cpu_isa_avx512_core_bf16)) return Isa::avx512_bf16;
  if (has(dnnl_cpu_isa_avx512_core)) return Isa::avx512;
  if (has(dnnl_cpu_isa_avx2)) return Isa::avx2;
  return Isa::baseline;
}

}  // namespace onednn
}  // namespace cpu
}  // namespace halfstep::backend

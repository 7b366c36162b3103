#include "report/matrix_unit.h"

#include <array>
#include <charconv>

#include "backend/capabilities.h"

namespace halfstep::report {
namespace {

struct CpuRow {
  backend::Isa from;
  DType dtype;
  MatrixUnit unit;
};
struct GpuRow {
  int from;  ///< compute capability, 70 for 7.0
  DType dtype;
  MatrixUnit unit;
};

/// The newest first. Each extent of a product is the depth of one of its two gradients, so the
/// multiple is the widest a unit needs in any direction.
constexpr std::array k_cpu_rows{
    CpuRow{backend::Isa::amx, DType::bfloat16, {"AMX tiles", 32}},
    // float16 numbers are the sum of two bfloat16 ones.
    CpuRow{backend::Isa::amx, DType::float16, {"AMX tiles", 32}},
    CpuRow{backend::Isa::avx512_bf16, DType::bfloat16, {"AVX512-BF16 dot products", 16}},
};
constexpr std::array k_gpu_rows{
    GpuRow{70, DType::float16, {"tensor cores", 8}},
    GpuRow{80, DType::bfloat16, {"tensor cores", 8}},
};

}  // namespace

int compute_capability(std::string_view arch) {
  if (!arch.starts_with("sm_")) return 0;
  int value = 0;
  std::from_chars(arch.data() + 3, arch.data() + arch.size(), value);
  return value;
}

bool is_gpu(std::string_view arch) { return compute_capability(arch) > 0; }

std::optional<MatrixUnit> matrix_unit(std::string_view arch, DType dtype) {
  if (is_gpu(arch)) {
    for (const GpuRow& row : k_gpu_rows) {
      if (row.dtype == dtype && compute_capability(arch) >= row.from) return row.unit;
    }
    return std::nullopt;
  }
  const std::optional<backend::Isa> isa = backend::isa_named(arch);
  for (const CpuRow& row : k_cpu_rows) {
    if (isa && row.dtype == dtype && *isa >= row.from) return row.unit;
  }
  return std::nullopt;
}

}  // namespace halfstep::report

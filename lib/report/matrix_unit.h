#pragma once
// The matrix unit of a processor for 16-bit dtypes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace halfstep::report {

struct MatrixUnit {
  std::string_view name;      ///< "AMX tiles"
  std::int64_t multiple = 1;  ///< extents of GEMMs are padded to multiples of this
  std::string_view caveat;    ///< how it multiplies the dtype where it has no such instruction
};

/// "sm_70", "sm_90a": the name of a CUDA GPU, present or not.
bool is_gpu(std::string_view arch);

/// Whether it is a known CUDA target.
bool is_known_gpu(std::string_view arch);

/// For --arch. Errors: always, UserError(config) listing `other` and the GPUs.
[[noreturn]] void refuse_arch(std::string_view arch, std::vector<std::string> other);

/// 70 of "sm_70" and "sm_70a", 0 for anything else.
int compute_capability(std::string_view arch);

/// The unit of an instruction set ("avx512_bf16", "amx") or GPU ("sm_80") that multiplies `dtype`
/// with float32 accumulation; nothing when matmuls are computed in float32 instead.
std::optional<MatrixUnit> matrix_unit(std::string_view arch, DType dtype);

/// How a processor without instructions for a 16-bit dtype multiplies it; "" for one that has them.
std::string_view half_caveat(std::string_view arch, DType dtype);

}  // namespace halfstep::report

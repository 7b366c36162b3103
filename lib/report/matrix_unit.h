#pragma once
// The part of a processor that multiplies 16-bit matrices fast, where it has one.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"

namespace halfstep::report {

struct MatrixUnit {
  std::string_view name;      ///< "AMX tiles"
  std::int64_t multiple = 1;  ///< extents of products are padded to multiples of this
};

/// "sm_70", "sm_90a": a GPU of CUDA, whether or not there is one here.
bool is_gpu(std::string_view arch);

/// Whether it is one of CUDA's targets.
bool is_known_gpu(std::string_view arch);

/// For --arch. Errors: always, UserError(config) listing `other` and the GPUs.
[[noreturn]] void refuse_arch(std::string_view arch, std::vector<std::string> other);

/// 70 of "sm_70" and "sm_70a", 0 for anything else.
int compute_capability(std::string_view arch);

/// The unit of an instruction set ("avx512_bf16", "amx") or GPU ("sm_80") that multiplies `dtype`
/// and sums in float32; nothing when products are computed in float32 instead.
std::optional<MatrixUnit> matrix_unit(std::string_view arch, DType dtype);

}  // namespace halfstep::report

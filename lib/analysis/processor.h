#pragma once
// The arithmetic of processors and kernels: matrix units for 16-bit dtypes, the accumulation dtype
// of a kernel, and whether it used the tensor cores of a GPU.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "train/session.h"

namespace halfstep::analysis {

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

/// The processor of a kernel.
struct Processor {
  std::string arch;       ///< "avx512", "sm_90"
  bool emulated = false;  ///< a GPU emulated on the CPU
  bool tf32 = false;      ///< float32 matmuls may use TensorFloat-32
};

/// The processor of the session's backend, or `gpu` ("sm_70"), which need not be present.
Processor processor_of(const train::Session& session, const std::string& gpu = "");

/// The narrowest accumulation dtype of `kernel` for `op` on values of `dtype`; "" where the op does
/// not accumulate, where no kernel is known, and where the kernel does not define it.
std::string_view accumulate_dtype(std::string_view kernel,
                                  std::string_view op,
                                  std::string_view dtype);

/// Whether `kernel` multiplies values of `dtype` on the tensor cores of a GPU: false on a CPU, for
/// kernels without matmuls, and where the dtype or the GPU excludes them; nothing where a library
/// decides by itself, and without a kernel.
std::optional<bool> uses_tensor_cores(std::string_view kernel,
                                      std::string_view dtype,
                                      const Processor& processor);

/// Whether it is the name of a 16-bit dtype: "float16", "bfloat16".
bool is_half_name(std::string_view dtype);

}  // namespace halfstep::analysis

#pragma once
// Facts about the arithmetic of a kernel: its accumulation dtype, and whether it used the tensor
// cores of a GPU.

#include <optional>
#include <string>
#include <string_view>

#include "train/session.h"

namespace halfstep::report {

/// The processor of a kernel.
struct Processor {
  std::string arch;       ///< "avx512", "sm_90"
  bool emulated = false;  ///< a GPU emulated on the CPU
  bool tf32 = false;      ///< float32 matmuls may use TensorFloat-32
};

/// The processor of the session's backend.
Processor processor_of(const train::Session& session);
/// The same for a GPU that is not present.
Processor pretended_gpu(const train::Session& session, std::string arch);

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

}  // namespace halfstep::report

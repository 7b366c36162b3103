#pragma once
// What is known of the arithmetic of a kernel that ran: in which dtype it sums, and whether matrix
// units of a GPU did the work.

#include <optional>
#include <string>
#include <string_view>

#include "train/session.h"

namespace halfstep::report {

/// What kernels run on.
struct Processor {
  std::string arch;       ///< "avx512", "sm_90"
  bool emulated = false;  ///< a GPU that the CPU computes for
  bool tf32 = false;      ///< float32 products may be shortened
};

/// Of the backend that a session computes on.
Processor processor_of(const train::Session& session);
/// The same for a GPU that need not be there.
Processor pretended_gpu(const train::Session& session, std::string arch);

/// The narrowest dtype of the partial sums that `kernel` makes for `op` on values of `dtype`; ""
/// where the op sums nothing, where no kernel is known, and where the kernel does not say.
std::string_view accumulate_dtype(std::string_view kernel,
                                  std::string_view op,
                                  std::string_view dtype);

/// Whether `kernel` multiplies values of `dtype` on the tensor cores of a GPU: false on a CPU, for
/// kernels without products, and where the dtype or the GPU rules them out; nothing where a library
/// decides for itself, and without a kernel.
std::optional<bool> uses_tensor_cores(std::string_view kernel,
                                      std::string_view dtype,
                                      const Processor& processor);

}  // namespace halfstep::report

#include <algorithm>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/onednn/onednn.h"
#include "backend/cpu/processor.h"
#include "core/concatenate.h"
#include "core/error.h"
#include "core/parallel.h"

namespace halfstep::backend {

std::span<const Kernel> cpu::all_kernels() {
  static const std::vector<Kernel> k_all = concatenate<Kernel>({collective_kernels(),
                                                                packed_kernels(),
                                                                recurrent_kernels(),
                                                                attention_kernels(),
                                                                onednn_kernels(),
                                                                vector_kernels(),
                                                                reference_kernels()});
  return k_all;
}

Backend cpu_backend(int threads, Isa max_isa) {
  require(threads >= 1, "a CPU backend with {} threads", threads);
  static const Isa k_detected = cpu::detect_isa();
  const Isa isa = std::min(k_detected, max_isa);
  set_thread_count(threads);
  cpu::onednn::limit(isa);
  cpu::onednn::share_threads();
  return {.name = "cpu",
          .capabilities = {.isa = isa, .threads = threads},
          .kernels = cpu::all_kernels()};
}

std::string_view disabled_isa_reason() { return cpu::disabled_isa_reason(); }

Backend cpu_reference() {
  return {.name = "cpu",
          .capabilities = {.isa = Isa::baseline, .threads = thread_count()},
          .kernels = cpu::reference_kernels()};
}

}  // namespace halfstep::backend

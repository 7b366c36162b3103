#include "report/kernel_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/ranges.h"
#include "report/matrix_unit.h"

namespace halfstep::report {
namespace {

/// The accumulation dtypes of one technique, the first component of its kernels' names.
struct Technique {
  std::string_view name;
  /// For values of at most 32 bits. `vector` accumulates runs of 16 lanes and blocks of up to 128
  /// rows in float32 and these in float64; cuBLASLt and cuDNN are restricted to algorithms with
  /// float32 accumulators.
  std::string_view narrow;
  std::string_view float64;   ///< for float64 values; "" if there are no such kernels
  std::string_view integers;  ///< of int32 and int64 values; "" where there are no such kernels
  bool library = false;       ///< of NVIDIA, may use tensor cores
};

constexpr std::array k_techniques{
    Technique{"reference", "float64", "float64", "int64"},
    Technique{"vector", "float32", "", ""},
    Technique{"onednn", "float32", "", ""},
    Technique{"packed", "float32", "", ""},
    Technique{"recurrent", "float32", "", ""},
    Technique{"attention", "float32", "", ""},
    Technique{"ranks", "float32", "", ""},
    Technique{"cuda", "float32", "float64", "int64"},
    Technique{"cublaslt", "float32", "", "", true},
    Technique{"cudnn", "float32", "", "", true},
};

const Technique* technique_of(std::string_view kernel) {
  const std::string_view first = kernel.substr(0, kernel.find('/'));
  return find_or_null(k_techniques, first, &Technique::name);
}

/// Whether an op sums many terms, so that its accumulation dtype matters.
bool accumulates(std::string_view op) {
  static constexpr std::array<std::string_view, 15> k_parts{"MatMul",
                                                            "Conv2d",
                                                            "Conv2D",
                                                            "Sum",
                                                            "Mean",
                                                            "AvgPool",
                                                            "L2Loss",
                                                            "BatchNorm",
                                                            "BatchMoments",
                                                            "LayerNorm",
                                                            "SquaredNorms",
                                                            "Softmax",
                                                            "BiasAddGrad",
                                                            "RNN",
                                                            "Attention"};
  return std::ranges::any_of(
      k_parts, [&](std::string_view part) { return op.find(part) != std::string_view::npos; });
}

bool may_use_tf32(const train::Session& session) {
  return session.spec().precision.float32_math == config::Float32Math::tf32;
}

}  // namespace

Processor processor_of(const train::Session& session) {
  const backend::Backend& backend = session.backend();
  const int capability = backend.capabilities.compute_capability;
  return {capability > 0 ? fmt::format("sm_{}", capability)
                         : std::string(backend::name(backend.capabilities.isa)),
          backend.device_info.flavour == "emulated",
          may_use_tf32(session)};
}

Processor pretended_gpu(const train::Session& session, std::string arch) {
  return {std::move(arch), false, may_use_tf32(session)};
}

std::string_view accumulate_dtype(std::string_view kernel,
                                  std::string_view op,
                                  std::string_view dtype) {
  const Technique* technique = technique_of(kernel);
  if (technique == nullptr || !accumulates(op)) return "";
  if (dtype == "float64") return technique->float64;
  if (dtype == "int32" || dtype == "int64") return technique->integers;
  return technique->narrow;
}

std::optional<bool> uses_tensor_cores(std::string_view kernel,
                                      std::string_view dtype,
                                      const Processor& processor) {
  const Technique* technique = technique_of(kernel);
  if (technique == nullptr) return std::nullopt;
  if (!technique->library || processor.emulated || !is_gpu(processor.arch)) return false;
  if (dtype == "float32" && !processor.tf32) return false;
  // TensorFloat-32 was introduced with the same generation as bfloat16.
  const auto unit = dtype_named(dtype == "float32" ? "bfloat16" : dtype);
  if (unit && !matrix_unit(processor.arch, *unit)) return false;
  return std::nullopt;
}

}  // namespace halfstep::report

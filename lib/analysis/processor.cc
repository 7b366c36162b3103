#include "analysis/processor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "backend/capabilities.h"
#include "core/error.h"
#include "core/ranges.h"

namespace halfstep::analysis {
namespace {

struct CpuUnit {
  backend::Isa from;
  DType dtype;
  MatrixUnit unit;
};
struct GpuUnit {
  int from;  ///< compute capability, 70 for 7.0
  DType dtype;
  MatrixUnit unit;
};

/// The newest first. Each extent of a GEMM is the reduction length of one of its two gradients, so
/// the multiple is the largest that a unit needs along any axis.
constexpr std::array k_cpu_units{
    CpuUnit{backend::Isa::amx, DType::bfloat16, {"AMX tiles", 32, ""}},
    // AMX-FP16 is an extension of its own, which no kernel uses.
    CpuUnit{backend::Isa::amx,
            DType::float16,
            {"AMX tiles", 32, "multiplied as bfloat16 parts, which is slower than bfloat16"}},
    CpuUnit{backend::Isa::avx512_bf16, DType::bfloat16, {"AVX512-BF16 dot products", 16, ""}},
};
constexpr std::array k_gpu_units{
    GpuUnit{70, DType::float16, {"tensor cores", 8, ""}},
    GpuUnit{80, DType::bfloat16, {"tensor cores", 8, ""}},
};

/// The targets of NVIDIA's compilers, and the suffixes of their variants.
constexpr std::array<std::string_view, 27> k_gpus{
    "sm_20", "sm_21", "sm_30", "sm_32",  "sm_35",  "sm_37",  "sm_50",  "sm_52",  "sm_53",
    "sm_60", "sm_61", "sm_62", "sm_70",  "sm_72",  "sm_75",  "sm_80",  "sm_86",  "sm_87",
    "sm_88", "sm_89", "sm_90", "sm_100", "sm_101", "sm_103", "sm_110", "sm_120", "sm_121"};

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

}  // namespace

bool is_known_gpu(std::string_view arch) {
  if (arch.ends_with('a') || arch.ends_with('f')) arch.remove_suffix(1);
  return contains(k_gpus, arch);
}

void refuse_arch(std::string_view arch, std::vector<std::string> other) {
  std::vector<std::string> known = std::move(other);
  known.insert(known.end(), k_gpus.begin(), k_gpus.end());
  const std::string near = did_you_mean(arch, known);
  throw UserError(
      ErrorKind::config,
      {"--arch", 0, 0, ""},
      fmt::format("unknown architecture '{}'", arch),
      fmt::format("{}{}one of {}", near, near.empty() ? "" : " ", fmt::join(known, ", ")));
}

int compute_capability(std::string_view arch) {
  if (!arch.starts_with("sm_")) return 0;
  int value = 0;
  std::from_chars(arch.data() + 3, arch.data() + arch.size(), value);
  return value;
}

bool is_gpu(std::string_view arch) { return compute_capability(arch) > 0; }

std::optional<MatrixUnit> matrix_unit(std::string_view arch, DType dtype) {
  if (is_gpu(arch)) {
    for (const GpuUnit& entry : k_gpu_units) {
      if (entry.dtype == dtype && compute_capability(arch) >= entry.from) return entry.unit;
    }
    return std::nullopt;
  }
  const std::optional<backend::Isa> isa = backend::isa_named(arch);
  for (const CpuUnit& entry : k_cpu_units) {
    if (isa && entry.dtype == dtype && *isa >= entry.from) return entry.unit;
  }
  return std::nullopt;
}

std::string_view half_caveat(std::string_view arch, DType dtype) {
  const std::optional<MatrixUnit> unit = matrix_unit(arch, dtype);
  if (unit || !is_half(dtype)) return unit ? unit->caveat : "";
  return "held in 16 bits and multiplied in float32, which saves memory, not time";
}

Processor processor_of(const train::Session& session, const std::string& gpu) {
  const bool tf32 = session.spec().precision.float32_math == config::Float32Math::tf32;
  if (!gpu.empty()) return {gpu, false, tf32};
  const backend::Backend& backend = session.backend();
  const int capability = backend.capabilities.compute_capability;
  return {capability > 0 ? fmt::format("sm_{}", capability)
                         : std::string(backend::name(backend.capabilities.isa)),
          backend.device_info.flavour == "emulated",
          tf32};
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

bool is_half_name(std::string_view dtype) { return dtype == "float16" || dtype == "bfloat16"; }

}  // namespace halfstep::analysis

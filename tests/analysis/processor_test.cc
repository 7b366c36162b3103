// Processors and their arithmetic: the units that multiply 16-bit dtypes, by instruction set and
// GPU, and the facts about kernels, which are no more than is known.

#include "analysis/processor.h"

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "backend/cuda/kernel_table.h"

namespace halfstep::analysis {
namespace {

TEST_CASE("matrix units: each dtype has the unit and the caveat of its processor") {
  constexpr std::string_view k_widened =
      "held in 16 bits and multiplied in float32, which saves memory, not time";
  struct Row {
    std::string_view arch;
    DType dtype;
    std::string_view unit, caveat;
  };
  // AMX multiplies bfloat16; float16 gains time there by bfloat16 parts, and less of it.
  constexpr std::array k_rows{Row{"amx", DType::bfloat16, "AMX tiles", ""},
                              Row{"amx",
                                  DType::float16,
                                  "AMX tiles",
                                  "multiplied as bfloat16 parts, which is slower than bfloat16"},
                              Row{"avx512_bf16", DType::bfloat16, "AVX512-BF16 dot products", ""},
                              Row{"avx512_bf16", DType::float16, "", k_widened},
                              Row{"avx512", DType::bfloat16, "", k_widened},
                              Row{"baseline", DType::float16, "", k_widened},
                              Row{"amx", DType::float32, "", ""},
                              Row{"sm_70", DType::float16, "tensor cores", ""},
                              Row{"sm_75", DType::bfloat16, "", k_widened},
                              Row{"sm_80", DType::bfloat16, "tensor cores", ""}};
  for (const Row& row : k_rows) {
    CAPTURE(row.arch);
    CAPTURE(row.dtype);
    const auto unit = matrix_unit(row.arch, row.dtype);
    CHECK((unit ? unit->name : "") == row.unit);
    CHECK(half_caveat(row.arch, row.dtype) == row.caveat);
  }
}

TEST_CASE("kernel facts: the dtype of sums is that of the kernel that ran") {
  struct Row {
    std::string_view kernel, op, dtype, sums;
  };
  constexpr std::array k_rows{
      Row{"onednn/matmul", "MatMul", "bfloat16", "float32"},
      Row{"packed/amx", "PackedMatMul", "float16", "float32"},
      Row{"vector/reduce", "Sum", "float32", "float32"},
      Row{"vector/layer_norm", "LayerNormGrad", "bfloat16", "float32"},
      Row{"reference/matmul", "MatMul", "float32", "float64"},
      Row{"reference/pool", "AvgPool", "float16", "float64"},
      Row{"reference/reduce", "Sum", "int32", "int64"},
      Row{"cuda/reduce", "Sum", "float64", "float64"},
      Row{"cudnn/convolution", "Conv2D", "float16", "float32"},
      Row{"vector/elementwise", "Relu", "float32", ""},  // sums nothing
      Row{"", "MatMul", "float32", ""},                  // nothing ran
      Row{"someone/matmul", "MatMul", "float32", ""},    // not known
      Row{"onednn/matmul", "MatMul", "float64", ""}};    // there is no such kernel
  for (const Row& row : k_rows) {
    CAPTURE(row.kernel);
    CAPTURE(row.dtype);
    CHECK(accumulate_dtype(row.kernel, row.op, row.dtype) == row.sums);
  }
}

TEST_CASE("kernel facts: every kernel of both backends is of a technique that is known") {
  std::set<std::string> unknown;
  for (const auto kernels : {backend::cpu_backend(1).kernels,
                             backend::cpu_reference().kernels,
                             backend::cuda::kernel_table()}) {
    for (const backend::Kernel& kernel : kernels) {
      if (accumulate_dtype(kernel.name, "MatMul", "float32").empty()) {
        unknown.insert(std::string(kernel.name));
      }
    }
  }
  CHECK(unknown == std::set<std::string>{});
}

TEST_CASE("kernel facts: tensor cores are claimed where nothing is left open, and ruled out") {
  struct Row {
    std::string_view kernel, dtype, arch;
    bool emulated, tf32;
    std::optional<bool> used;
  };
  constexpr std::array k_rows{
      Row{"packed/amx", "bfloat16", "amx", false, false, false},  // of a GPU, the field means
      Row{"cuda/softmax", "float16", "sm_90", false, false, false},
      Row{"cublaslt/matmul", "float16", "sm_90", false, false, std::nullopt},
      Row{"cudnn/convolution", "bfloat16", "sm_80", false, false, std::nullopt},
      Row{"cublaslt/matmul", "float16", "sm_61", false, false, false},
      Row{"cublaslt/matmul", "float16", "sm_90", true, false, false},
      Row{"cublaslt/matmul", "float32", "sm_90", false, false, false},
      Row{"cublaslt/matmul", "float32", "sm_90", false, true, std::nullopt},
      Row{"cublaslt/matmul", "float32", "sm_75", false, true, false},
      Row{"", "float16", "sm_90", false, false, std::nullopt}};
  for (const Row& row : k_rows) {
    CAPTURE(row.kernel);
    CAPTURE(row.dtype);
    CAPTURE(row.arch);
    const Processor processor{std::string(row.arch), row.emulated, row.tf32};
    CHECK((uses_tensor_cores(row.kernel, row.dtype, processor) == row.used));
  }
}

}  // namespace
}  // namespace halfstep::analysis

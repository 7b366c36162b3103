#pragma once
// A FusedElementwise: a body of elementwise ops on each element, which is loaded and stored once.
// The functions are those of backend/functions; each op computes in float and rounds to its dtype,
// bit for bit as the separate kernels.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "backend/cuda/kernels/stream.h"
#include "core/dtype.h"
#include "core/shape.h"

namespace halfstep::backend::cuda::kernels {

/// The number of an op inside a body; nothing for ops that cannot be in one.
std::optional<std::uint8_t> fused_function(std::string_view op);

/// One op. Operands are numbers of values: the inputs come first, then the results of the preceding
/// ops. Random numbers have one operand, the input that is the ordinal.
struct FusedStep {
  std::uint8_t function = 0;
  std::array<std::uint8_t, 3> operands{};
  DType dtype{};  ///< float32, float16, bfloat16, or bool, which is 0 or 1
  float alpha = 0;
  std::uint64_t seed = 0;  ///< of random numbers, as is `stream`
  std::uint64_t stream = 0;
};

/// Inputs have any dtype of a step, or an integer dtype, and broadcast to `shape`; an input that is
/// read as an ordinal is an int64 scalar. Outputs have `shape` and may alias inputs of the same
/// element size.
struct FusedParams {
  static constexpr std::size_t k_max_inputs = 8;
  static constexpr std::size_t k_max_steps = 12;

  struct Input {
    DType dtype{};
    Shape shape;
    const void* data = nullptr;
  };
  struct Output {
    std::size_t step = 0;
    void* data = nullptr;
  };

  Shape shape;
  std::size_t inputs = 0, steps = 0, outputs = 0;
  std::array<Input, k_max_inputs> input{};
  std::array<FusedStep, k_max_steps> step{};
  std::array<Output, k_max_steps> output{};
};
void fused_elementwise(Stream stream, const FusedParams& params);

/// Whether the compiler made a kernel for the body, which runs where operands and results are
/// aligned to 8 elements and their number is a multiple of 8; other bodies are interpreted.
bool has_compiled_body(const FusedParams& params);

}  // namespace halfstep::backend::cuda::kernels

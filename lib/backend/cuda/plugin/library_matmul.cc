#include "backend/cuda/plugin/library_matmul.h"

#include <fmt/format.h>

#include <vector>

#include "backend/cuda/kernels/array.h"
#include "core/error.h"
#include "core/half.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// A matrix and the larger, padded one that holds it.
struct PaddedOperand {
  Shape small, large;  ///< [rows, columns]

  std::size_t bytes() const {
    return aligned(static_cast<std::size_t>(large.elements()) * sizeof(float16));
  }
  kernels::ResizedMatrix enter(const void* from, void* to) const {
    return {from, to, small[0], small[1], large[0], large[1]};
  }
  kernels::ResizedMatrix leave(const void* from, void* to) const {
    return {from, to, large[0], large[1], small[0], small[1]};
  }
};

Shape matrix(std::int64_t rows, std::int64_t columns, bool transposed) {
  return transposed ? Shape{columns, rows} : Shape{rows, columns};
}

/// The operands of a matmul and their padded copies.
struct PaddedOperands {
  PaddedOperands(const MatmulKey& key, const MatmulKey& large)
      : a{matrix(key.m, key.k, key.transpose_a), matrix(large.m, large.k, key.transpose_a)},
        b{matrix(key.k, key.n, key.transpose_b), matrix(large.k, large.n, key.transpose_b)},
        c{Shape{key.m, key.n}, Shape{large.m, large.n}},
        bias{Shape{1, key.n}, Shape{1, large.n}} {}

  PaddedOperand a, b, c, bias;
};

}  // namespace

MatmulKey matmul_key(const graph::TensorType& a,
                     const graph::TensorType& b,
                     bool transpose_a,
                     bool transpose_b,
                     const graph::TensorType& y,
                     const DeviceContext& context) {
  const std::size_t last = a.shape.rank() - 1;
  return {.m = y.shape[y.shape.rank() - 2],
          .n = y.shape.back(),
          .k = transpose_a ? a.shape[last - 1] : a.shape[last],
          .transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .in = b.dtype,
          .out = y.dtype,
          .float32 = context.float32};
}

std::string algorithm_text(const std::string& chosen, std::size_t workspace_bytes) {
  constexpr std::size_t k_kibibyte = 1024;
  return fmt::format(
      "{}, workspace {} KiB", chosen, (workspace_bytes + k_kibibyte - 1) / k_kibibyte);
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + k_alignment - 1) / k_alignment * k_alignment;
}

LibraryMatmul::LibraryMatmul(const MatmulKey& key, const DeviceContext& context)
    : key_(key),
      padding_(padding_of(key)),
      matmul_(context.vendor.matmul(padding_ ? padding_->key : key)),
      stream_(context.stream()) {
  if (matmul_ || !padding_) return;
  padding_.reset();
  matmul_ = context.vendor.matmul(key);
}

std::shared_ptr<LibraryMatmul> LibraryMatmul::find(const MatmulKey& key,
                                                   const DeviceContext& context) {
  std::shared_ptr<LibraryMatmul> matmul(new LibraryMatmul(key, context));
  return matmul->matmul_ ? matmul : nullptr;
}

std::shared_ptr<LibraryMatmul> LibraryMatmul::get(const MatmulKey& key,
                                                  const DeviceContext& context) {
  std::shared_ptr<LibraryMatmul> matmul = find(key, context);
  require(matmul != nullptr, "no library has {}", to_string(key));
  return matmul;
}

std::size_t LibraryMatmul::workspace_bytes() const {
  std::size_t bytes = matmul_->workspace_bytes();
  if (!padding_) return bytes;
  const PaddedOperands padded(key_, padding_->key);
  if (padding_->a) bytes += padded.a.bytes();
  if (padding_->b) bytes += padded.b.bytes();
  if (padding_->c) bytes += padded.c.bytes();
  if (padding_->bias) bytes += padded.bias.bytes();
  return bytes;
}

std::string LibraryMatmul::algorithm() const {
  std::string text = algorithm_text(matmul_->description(), matmul_->workspace_bytes());
  if (padding_) {
    const MatmulKey& large = padding_->key;
    text += fmt::format(", padded to {}x{}x{}", large.m, large.n, large.k);
  }
  return text;
}

void LibraryMatmul::run(const Matmul::Operands& operands, std::byte* workspace) const {
  if (padding_) return run_padded(operands, workspace);
  matmul_->run(operands, workspace);
}

void LibraryMatmul::run_padded(Matmul::Operands operands, std::byte* workspace) const {
  const PaddedOperands padded(key_, padding_->key);
  const auto take = [&](const PaddedOperand& operand) {
    std::byte* buffer = workspace;
    workspace += operand.bytes();
    return buffer;
  };
  const bool sums = key_.epilogue == Epilogue::sums_of_b;
  // One launch before the matmul, and one after it.
  std::vector<kernels::ResizedMatrix> entering, leaving;
  const auto enter = [&](const PaddedOperand& operand, const void* from) {
    std::byte* buffer = take(operand);
    entering.push_back(operand.enter(from, buffer));
    return buffer;
  };
  const auto leave = [&](const PaddedOperand& operand, void* to) {
    std::byte* buffer = take(operand);
    leaving.push_back(operand.leave(buffer, to));
    return buffer;
  };
  if (padding_->a) operands.a = enter(padded.a, operands.a);
  if (padding_->b) operands.b = enter(padded.b, operands.b);
  if (padding_->c) operands.c = leave(padded.c, operands.c);
  if (padding_->bias && sums) {
    operands.bias = leave(padded.bias, operands.bias);
  } else if (padding_->bias) {
    operands.bias = enter(padded.bias, operands.bias);
  }
  if (!entering.empty()) kernels::resize_matrices(stream_, entering);
  matmul_->run(operands, workspace);
  if (!leaving.empty()) kernels::resize_matrices(stream_, leaving);
}

}  // namespace halfstep::backend::cuda::plugin

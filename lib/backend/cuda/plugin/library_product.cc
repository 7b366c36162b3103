#include "backend/cuda/plugin/library_product.h"

#include "backend/cuda/kernels/array.h"
#include "core/error.h"

namespace halfstep::backend::cuda::plugin {
namespace {

/// A matrix and the larger, padded one that holds it.
struct PaddedOperand {
  Shape small, large;
  std::size_t element_bytes;

  std::size_t bytes() const {
    return aligned(static_cast<std::size_t>(large.elements()) * element_bytes);
  }
  void enter(Stream stream, const void* from, void* to, bool zeros) const {
    if (zeros) {
      kernels::fill(stream,
                    {.element_bytes = element_bytes, .y = to, .elements = large.elements()});
    }
    const std::vector<std::int64_t> nothing(2 * small.rank(), 0);
    const kernels::CopyParams copy{.element_bytes = element_bytes,
                                   .map = kernels::map_of_pad(small, nothing, large),
                                   .x = from,
                                   .y = to};
    kernels::copy(stream, copy);
  }
  void leave(Stream stream, const void* from, void* to) const {
    const std::vector<std::int64_t> begin(small.rank(), 0);
    kernels::copy(stream,
                  {.element_bytes = element_bytes,
                   .map = kernels::map_of_slice(large, begin, small),
                   .x = from,
                   .y = to});
  }
};

Shape matrix(std::int64_t rows, std::int64_t columns, bool transposed) {
  return transposed ? Shape{columns, rows} : Shape{rows, columns};
}

/// The operands of a matmul and their padded copies.
struct PaddedOperands {
  PaddedOperands(const MatmulKey& key, const MatmulKey& large)
      : a{matrix(key.m, key.k, key.transpose_a),
          matrix(large.m, large.k, key.transpose_a),
          size_bytes(key.in)},
        b{matrix(key.k, key.n, key.transpose_b),
          matrix(large.k, large.n, key.transpose_b),
          size_bytes(key.in)},
        c{Shape{key.m, key.n}, Shape{large.m, large.n}, size_bytes(key.out)},
        bias{Shape{key.n}, Shape{large.n}, size_bytes(key.out)} {}

  PaddedOperand a, b, c, bias;
};

}  // namespace

MatmulKey product_key(const graph::TensorType& a,
                      const graph::TensorType& b,
                      bool transpose_a,
                      bool transpose_b,
                      const graph::TensorType& y,
                      const Machine& machine) {
  const std::size_t last = a.shape.rank() - 1;
  return {.m = y.shape[y.shape.rank() - 2],
          .n = y.shape.back(),
          .k = transpose_a ? a.shape[last - 1] : a.shape[last],
          .transpose_a = transpose_a,
          .transpose_b = transpose_b,
          .in = b.dtype,
          .out = y.dtype,
          .float32 = machine.float32};
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + k_alignment - 1) / k_alignment * k_alignment;
}

LibraryProduct::LibraryProduct(const MatmulKey& key, const Machine& machine)
    : key_(key),
      padding_(padding_of(key)),
      product_(machine.vendor.matmul(padding_ ? padding_->key : key)),
      stream_(machine.stream()) {
  if (product_ || !padding_) return;
  padding_.reset();
  product_ = machine.vendor.matmul(key);
}

std::shared_ptr<LibraryProduct> LibraryProduct::find(const MatmulKey& key, const Machine& machine) {
  std::shared_ptr<LibraryProduct> product(new LibraryProduct(key, machine));
  return product->product_ ? product : nullptr;
}

std::shared_ptr<LibraryProduct> LibraryProduct::get(const MatmulKey& key, const Machine& machine) {
  std::shared_ptr<LibraryProduct> product = find(key, machine);
  require(product != nullptr, "no library has {}", to_string(key));
  return product;
}

std::size_t LibraryProduct::workspace_bytes() const {
  std::size_t bytes = product_->workspace_bytes();
  if (!padding_) return bytes;
  const PaddedOperands padded(key_, padding_->key);
  if (padding_->a) bytes += padded.a.bytes();
  if (padding_->b) bytes += padded.b.bytes();
  if (padding_->c) bytes += padded.c.bytes();
  if (padding_->bias) bytes += padded.bias.bytes();
  return bytes;
}

void LibraryProduct::run(const Matmul::Operands& operands, std::byte* workspace) const {
  if (padding_) return run_padded(operands, workspace);
  product_->run(operands, workspace);
}

void LibraryProduct::run_padded(Matmul::Operands operands, std::byte* workspace) const {
  const PaddedOperands padded(key_, padding_->key);
  const auto take = [&](const PaddedOperand& operand) {
    std::byte* place = workspace;
    workspace += operand.bytes();
    return place;
  };
  void* const c = operands.c;
  void* const bias = operands.bias;
  const bool sums = key_.epilogue == Epilogue::sums_of_b;
  if (padding_->a) {
    std::byte* place = take(padded.a);
    padded.a.enter(stream_, operands.a, place, padding_->zeros);
    operands.a = place;
  }
  if (padding_->b) {
    std::byte* place = take(padded.b);
    padded.b.enter(stream_, operands.b, place, padding_->zeros);
    operands.b = place;
  }
  if (padding_->c) operands.c = take(padded.c);
  if (padding_->bias) {
    operands.bias = take(padded.bias);
    if (!sums) padded.bias.enter(stream_, bias, operands.bias, false);
  }
  product_->run(operands, workspace);
  if (padding_->c) padded.c.leave(stream_, operands.c, c);
  if (sums && padding_->bias) padded.bias.leave(stream_, operands.bias, bias);
}

}  // namespace halfstep::backend::cuda::plugin

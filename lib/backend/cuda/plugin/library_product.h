#pragma once
// A matrix product as the library gets it.

#include <memory>
#include <optional>

#include "backend/cuda/plugin/prepare.h"
#include "backend/cuda/vendor/matmul_padding.h"

namespace halfstep::backend::cuda::plugin {

/// The product of the last two extents of `a` and `b`, either of which may lie transposed.
MatmulKey product_key(const graph::TensorType& a,
                      const graph::TensorType& b,
                      bool transpose_a,
                      bool transpose_b,
                      const graph::TensorType& y,
                      const Machine& machine);

/// Bytes up to where the next piece of a workspace may begin.
std::size_t aligned(std::size_t bytes);

/// The library's product, with copies of operands whose rows are of an awkward length where that
/// pays.
class LibraryProduct {
 public:
  /// nullptr when the library has nothing for the key.
  static std::shared_ptr<LibraryProduct> find(const MatmulKey& key, const Machine& machine);
  /// Errors: InternalError when the library has nothing for the key.
  static std::shared_ptr<LibraryProduct> get(const MatmulKey& key, const Machine& machine);

  std::size_t workspace_bytes() const;
  /// Queues it. `workspace` is on k_alignment.
  void run(const Matmul::Operands& operands, std::byte* workspace) const;

 private:
  LibraryProduct(const MatmulKey& key, const Machine& machine);
  void run_padded(Matmul::Operands operands, std::byte* workspace) const;

  MatmulKey key_;
  std::optional<MatmulPadding> padding_;
  std::shared_ptr<Matmul> product_;
  Stream stream_;
};

}  // namespace halfstep::backend::cuda::plugin

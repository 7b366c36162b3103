#pragma once
// A matmul by the vendor's library.

#include <memory>
#include <optional>

#include "backend/cuda/plugin/prepare.h"
#include "backend/cuda/vendor/matmul_padding.h"

namespace halfstep::backend::cuda::plugin {

/// The matmul of the last two axes of `a` and `b`, either of which may be stored transposed.
MatmulKey matmul_key(const graph::TensorType& a,
                     const graph::TensorType& b,
                     bool transpose_a,
                     bool transpose_b,
                     const graph::TensorType& y,
                     const DeviceContext& context);

/// The description of an algorithm, and its workspace.
std::string algorithm_text(const std::string& chosen, std::size_t workspace_bytes);

/// `bytes` rounded up to the alignment of the pieces of a workspace.
std::size_t aligned(std::size_t bytes);

/// The library's matmul. Operands with rows that are no multiple of 16 bytes are copied to padded
/// ones where that pays.
class LibraryMatmul {
 public:
  /// nullptr when the library does not support the key.
  static std::shared_ptr<LibraryMatmul> find(const MatmulKey& key, const DeviceContext& context);
  /// Errors: InternalError when the library does not support the key.
  static std::shared_ptr<LibraryMatmul> get(const MatmulKey& key, const DeviceContext& context);

  std::size_t workspace_bytes() const;
  /// The library's algorithm, its workspace and the padding.
  std::string algorithm() const;
  bool uses_tensor_cores() const { return matmul_->uses_tensor_cores(); }
  /// Enqueues it. `workspace` is aligned to k_alignment.
  void run(const Matmul::Operands& operands, std::byte* workspace) const;

 private:
  LibraryMatmul(const MatmulKey& key, const DeviceContext& context);
  void run_padded(Matmul::Operands operands, std::byte* workspace) const;

  MatmulKey key_;
  std::optional<MatmulPadding> padding_;
  std::shared_ptr<Matmul> matmul_;
  Stream stream_;
};

}  // namespace halfstep::backend::cuda::plugin

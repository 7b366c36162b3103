#pragma once
// Tensor cores want rows of 16-bit matrices at multiples of 16 bytes. A product with rows of 10
// numbers falls back to kernels that read each matrix in small pieces, the large ones too; a few
// copies of the small ones with longer rows cost less.

#include <optional>

#include "backend/cuda/vendor/matmul_key.h"

namespace halfstep::backend::cuda {

/// A product with larger extents that holds the wanted one in its first rows and columns.
struct MatmulPadding {
  MatmulKey key;
  // Which operands have to be copied to matrices of that size, and C back from one.
  bool a = false;
  bool b = false;
  bool c = false;
  bool bias = false;
  /// k has grown: what was added to A and B must be zeros. What is added along m and n may be
  /// anything, for it reaches only rows and columns of C that nobody reads.
  bool zeros = false;
};

/// Nothing where the rows are good, or the copies would cost more than they bring.
std::optional<MatmulPadding> padding_of(const MatmulKey& key);

}  // namespace halfstep::backend::cuda

#pragma once
// Tensor cores need rows of 16-bit matrices at multiples of 16 bytes. A matmul with rows of 10
// elements falls back to kernels with narrow loads for every operand, the large ones too; padded
// copies of the small operands cost less. Their padding is zeros: a padded k adds nothing to a sum.

#include <optional>

#include "backend/cuda/vendor/matmul_key.h"

namespace halfstep::backend::cuda {

/// A matmul with larger extents that contains the original one in its first rows and columns.
struct MatmulPadding {
  MatmulKey key;
  // The operands to copy to padded matrices, and whether C is copied back from one.
  bool a = false;
  bool b = false;
  bool c = false;
  bool bias = false;
};

/// Nothing where the rows are aligned, or the copies would cost more than they gain.
std::optional<MatmulPadding> padding_of(const MatmulKey& key);

}  // namespace halfstep::backend::cuda

#pragma once
// A matmul with random operands, and the expected results by the row-major formula in double.

#include <cstdint>

#include "backend/cuda/vendor/matmul_key.h"
#include "core/tensor.h"
#include "support/cuda/random_values.h"

namespace halfstep::testing {

/// Extents from 1 to `largest`, either transposition, dtypes that go together.
backend::cuda::MatmulKey random_matmul(RandomStream& random, std::uint64_t largest);

struct MatmulCase {
  backend::cuda::MatmulKey key;
  Tensor a, b, c, bias;
  Tensor mask;    ///< bytes that the epilogues with a mask write or read
  Tensor before;  ///< c before the matmul

  MatmulCase(const backend::cuda::MatmulKey& key, RandomStream& random);

  /// Elements from a stored row to the next.
  std::int64_t row_a() const { return key.transpose_a ? key.m : key.k; }
  std::int64_t row_b() const;

  std::int64_t c_index(std::int64_t batch, std::int64_t i, std::int64_t j) const;
  double c_at(std::int64_t batch, std::int64_t i, std::int64_t j) const;
  double b_at(std::int64_t batch, std::int64_t l, std::int64_t j) const;
  double bias_at(std::int64_t j) const;

  /// sum_l a[i,l] b[l,j].
  double matmul(std::int64_t batch, std::int64_t i, std::int64_t j) const;
  /// The matmul with the forward epilogues; other epilogues do not change it.
  double forward(std::int64_t batch, std::int64_t i, std::int64_t j) const;
  /// The allowed error of one result: k multiplications (of 11 bits with TensorFloat-32), k
  /// additions, a bias and a store.
  double allowed(double result) const;
  /// The same for a sum of `count` results, or of `count` elements of B.
  double allowed_in_sums(std::int64_t count, double result) const;
};

}  // namespace halfstep::testing

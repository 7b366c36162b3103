#include "support/cuda/matmul_case.h"

#include <algorithm>
#include <cmath>

#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

using backend::cuda::Epilogue;
using backend::cuda::Float32Math;
using backend::cuda::MatmulKey;

double at(const Tensor& tensor, std::int64_t i) { return element_as_double(tensor.view(), i); }

}  // namespace

MatmulKey random_matmul(RandomStream& random, std::uint64_t largest) {
  const auto extent = [&] { return 1 + static_cast<std::int64_t>(random.below(largest)); };
  MatmulKey key{.m = extent(), .n = extent(), .k = extent()};
  key.transpose_a = random.below(2) == 1;
  key.transpose_b = random.below(2) == 1;
  key.in = pick(random, {DType::float16, DType::bfloat16, DType::float32});
  key.out = random.below(2) == 1 ? key.in : DType::float32;
  return key;
}

MatmulCase::MatmulCase(const MatmulKey& k, RandomStream& random) : key(k) {
  const auto elements = [&](std::int64_t rows, std::int64_t row, std::int64_t stride) {
    return rows * row + (key.batch - 1) * stride;
  };
  a = random_tensor(
      key.in, elements(key.transpose_a ? key.k : key.m, row_a(), key.stride_a), random);
  b = random_tensor(
      key.in, elements(key.transpose_b ? key.n : key.k, row_b(), key.stride_b), random);
  c = random_tensor(key.out, elements(key.m, key.n, key.stride_c), random);
  before = c.clone();
  bias = random_tensor(key.out, key.n, random);
  mask = poisoned_tensor(DType::uint8, graph::ops::fused_mask_bytes(key.m, key.n));
}

std::int64_t MatmulCase::row_b() const {
  if (key.row_b != 0) return key.row_b;
  return key.transpose_b ? key.k : key.n;
}

std::int64_t MatmulCase::c_index(std::int64_t batch, std::int64_t i, std::int64_t j) const {
  return batch * key.stride_c + i * key.n + j;
}

double MatmulCase::c_at(std::int64_t batch, std::int64_t i, std::int64_t j) const {
  return at(c, c_index(batch, i, j));
}

double MatmulCase::b_at(std::int64_t batch, std::int64_t l, std::int64_t j) const {
  return at(b, batch * key.stride_b + (key.transpose_b ? j * row_b() + l : l * row_b() + j));
}

double MatmulCase::bias_at(std::int64_t j) const { return at(bias, j); }

double MatmulCase::matmul(std::int64_t batch, std::int64_t i, std::int64_t j) const {
  double sum = 0;
  for (std::int64_t l = 0; l < key.k; ++l) {
    const std::int64_t index = key.transpose_a ? l * row_a() + i : i * row_a() + l;
    sum += at(a, batch * key.stride_a + index) * b_at(batch, l, j);
  }
  return sum;
}

double MatmulCase::forward(std::int64_t batch, std::int64_t i, std::int64_t j) const {
  const double sum = matmul(batch, i, j);
  switch (key.epilogue) {
    case Epilogue::bias:
      return sum + bias_at(j);
    case Epilogue::bias_relu:
    case Epilogue::bias_relu_mask:
      return std::max(sum + bias_at(j), 0.0);
    default:
      return sum;
  }
}

double MatmulCase::allowed(double result) const {
  // Elements are below 1, so no term and no bias is larger.
  const auto terms = static_cast<double>(key.k);
  const double sums = tolerance(key.out, DType::float32, key.k + 2, terms + 2, std::abs(result));
  const bool tf32 = key.in == DType::float32 && key.float32 == Float32Math::tf32;
  // Some algorithms of cuBLASLt round before they add the bias, which is below 1.
  const bool biased = key.epilogue != Epilogue::none && key.epilogue != Epilogue::sums_of_b;
  const double stored = biased ? tolerance(key.out, key.out, 0, 0, std::abs(result) + 1) : 0;
  return sums + stored + (tf32 ? terms * 0x1p-10 : 0);
}

double MatmulCase::allowed_in_sums(std::int64_t count, double result) const {
  const std::int64_t terms = count + key.k;
  return tolerance(
             key.out, DType::float32, terms, static_cast<double>(count * key.k), std::abs(result)) +
         (key.float32 == Float32Math::tf32 ? static_cast<double>(count * key.k) * 0x1p-10 : 0);
}

}  // namespace halfstep::testing

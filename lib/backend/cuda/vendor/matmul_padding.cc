#include "backend/cuda/vendor/matmul_padding.h"

namespace halfstep::backend::cuda {
namespace {

constexpr std::int64_t k_multiple = 8;  // elements of 16 bits in 16 bytes

// Where it pays, by estimate. A launch of a recorded step takes about 2 us and up to six are added;
// a device reads 2 TB/s and more, and about half of that in small pieces. So 8 MiB of matrices that
// need no copy, and four times as much as what does.
constexpr std::int64_t k_least_whole = std::int64_t{1} << 22;
constexpr std::int64_t k_whole_to_copied = 4;

std::int64_t padded(std::int64_t n) { return (n + k_multiple - 1) / k_multiple * k_multiple; }

/// Masks have the extents of C.
bool has_mask(Epilogue epilogue) {
  return epilogue == Epilogue::bias_relu_mask || epilogue == Epilogue::relu_gradient ||
         epilogue == Epilogue::relu_gradient_bias_gradient;
}

}  // namespace

std::optional<MatmulPadding> padding_of(const MatmulKey& key) {
  const bool dense = key.row_a == 0 && key.row_b == 0 && key.row_c == 0;
  if (!is_half(key.in) || key.batch != 1 || !dense) return std::nullopt;
  MatmulPadding padding{.key = key};
  MatmulKey& large = padding.key;
  // Extents that are the length of some row.
  large.n = padded(key.n);
  if (key.transpose_a) large.m = padded(key.m);
  if (!key.transpose_a || key.transpose_b) large.k = padded(key.k);
  const bool m = large.m != key.m, n = large.n != key.n, k = large.k != key.k;
  if (!(m || n || k) || ((m || n) && has_mask(key.epilogue))) return std::nullopt;
  padding.a = m || k;
  padding.b = n || k;
  padding.c = m || n;
  padding.bias = n && key.epilogue != Epilogue::none;
  padding.zeros = k;
  std::int64_t copied = 0, whole = 0;
  (padding.a ? copied : whole) += key.m * key.k;
  (padding.b ? copied : whole) += key.k * key.n;
  (padding.c ? copied : whole) += key.m * key.n;
  if (whole < k_least_whole || whole < k_whole_to_copied * copied) return std::nullopt;
  return padding;
}

}  // namespace halfstep::backend::cuda

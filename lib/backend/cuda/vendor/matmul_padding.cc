#include "backend/cuda/vendor/matmul_padding.h"

namespace halfstep::backend::cuda {
namespace {

constexpr std::int64_t k_multiple = 8;  // elements of 16 bits in 16 bytes

// Estimated break-even: a launch in a captured graph takes about 2 us and up to two are added; a
// device reads 2 TB/s and more, and about half of that with narrow loads. So at least 8 MiB of
// matrices that need no copy, and four times as much as is copied.
constexpr std::int64_t k_min_whole = std::int64_t{1} << 22;
constexpr std::int64_t k_whole_to_copied = 4;

std::int64_t padded(std::int64_t n) { return (n + k_multiple - 1) / k_multiple * k_multiple; }

}  // namespace

std::optional<MatmulPadding> padding_of(const MatmulKey& key) {
  if (!is_half(key.in) || key.batch != 1 || key.row_b != 0) return std::nullopt;
  MatmulPadding padding{.key = key};
  MatmulKey& large = padding.key;
  // The extents that are the row length of a matrix.
  large.n = padded(key.n);
  if (key.transpose_a) large.m = padded(key.m);
  if (!key.transpose_a || key.transpose_b) large.k = padded(key.k);
  const bool m = large.m != key.m, n = large.n != key.n, k = large.k != key.k;
  // Masks have the extents of C, so C cannot be padded.
  const graph::ops::FusedEpilogue& epilogue = traits_of(key.epilogue);
  const bool masked = epilogue.reads_mask || epilogue.writes_mask;
  if (!(m || n || k) || ((m || n) && masked)) return std::nullopt;
  padding.a = m || k;
  padding.b = n || k;
  padding.c = m || n;
  padding.bias = n && key.epilogue != Epilogue::none;
  std::int64_t copied = 0, whole = 0;
  (padding.a ? copied : whole) += key.m * key.k;
  (padding.b ? copied : whole) += key.k * key.n;
  (padding.c ? copied : whole) += key.m * key.n;
  if (whole < k_min_whole || whole < k_whole_to_copied * copied) return std::nullopt;
  return padding;
}

}  // namespace halfstep::backend::cuda

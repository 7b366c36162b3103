#pragma once
// Reduction of rows to columns on all threads. The result does not depend on the number of threads,
// since the split of rows into blocks depends only on the shape. Within a block up to 128 rows are
// reduced in float32, and their results in double.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/vector/loops.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::vector {

/// Adds partial sums.
inline constexpr auto k_plus = [](double a, double x) { return a + x; };

/// x [outer, rows, columns] -> [outer, columns].
class RowBlocks {
 public:
  RowBlocks(std::int64_t outer, std::int64_t rows, std::int64_t columns)
      : outer_(outer), rows_(rows), columns_(columns) {
    const std::int64_t min_rows = std::max<std::int64_t>(1, k_block / std::max(columns, k_one));
    block_rows_ = std::max({min_rows, (rows + k_max_blocks - 1) / k_max_blocks, k_one});
    blocks_ = std::max(k_one, (rows + block_rows_ - 1) / block_rows_);
    strips_ = std::max(k_one, (columns + k_run - 1) / k_run);
  }

  /// Doubles of workspace for `sums` results per column.
  std::size_t partials(int sums) const {
    return static_cast<std::size_t>(sums * outer_ * blocks_ * columns_);
  }

  /// Fills `partial`. step(acc, at, column, rows, columns) reduces rows * columns <= k_run
  /// contiguous elements from `at` on, which start in column `column`, into acc[s][0..].
  template <int sums, class Step, class Combine>
  void reduce(double* partial, float start, const Step& step, const Combine& combine) const {
    const std::int64_t units = outer_ * blocks_ * strips_;
    const std::int64_t cost = block_rows_ * std::min(columns_, k_run);
    parallel_for(
        units, std::max(k_one, k_grain / std::max(cost, k_one)), [&](auto begin, auto end) {
          // In reverse: the last rows are in the cache since the op that wrote them, and this pass
          // leaves the first rows there for the next op.
          for (std::int64_t unit = end; unit-- > begin;) {
            reduce_unit<sums>(partial, unit, start, step, combine);
          }
        });
  }

  /// The result of reduce() for column c of outer index o.
  template <class Combine>
  double combined(
      const double* partial, int s, std::int64_t o, std::int64_t c, const Combine& combine) const {
    const double* p = at(const_cast<double*>(partial), s, o, 0) + c;
    double value = *p;
    for (std::int64_t b = 1; b < blocks_; ++b) value = combine(value, p[b * columns_]);
    return value;
  }

 private:
  static constexpr std::int64_t k_one = 1;
  static constexpr std::int64_t k_block = 32768;     // minimum elements of a block
  static constexpr std::int64_t k_max_blocks = 16;   // bounds the workspace
  static constexpr std::int64_t k_float_rows = 128;  // rows reduced in float32
  static constexpr std::int64_t k_grain = 16384;

  double* at(double* partial, int s, std::int64_t o, std::int64_t b) const {
    return partial + ((s * outer_ + o) * blocks_ + b) * columns_;
  }

  template <int sums, class Step, class Combine>
  void reduce_unit(double* partial,
                   std::int64_t unit,
                   float start,
                   const Step& step,
                   const Combine& combine) const {
    const std::int64_t strip = unit % strips_;
    const std::int64_t block = unit / strips_ % blocks_;
    const std::int64_t o = unit / strips_ / blocks_;
    const std::int64_t column = strip * k_run;
    const std::int64_t width = std::min(k_run, columns_ - column);
    const std::int64_t per_run = strips_ == 1 ? std::max(k_one, k_run / std::max(width, k_one)) : 1;
    const std::int64_t end = std::min(rows_, (block + 1) * block_rows_);

    double* results[sums];
    for (int s = 0; s < sums; ++s) {
      results[s] = at(partial, s, o, block) + column;
      std::fill_n(results[s], width, static_cast<double>(start));
    }
    alignas(64) float scratch[sums][k_run];
    float* acc[sums];
    for (int s = 0; s < sums; ++s) acc[s] = scratch[s];
    for (std::int64_t row = block * block_rows_; row < end;) {
      const std::int64_t stop = std::min(end, row + k_float_rows);
      for (int s = 0; s < sums; ++s) std::fill_n(acc[s], width, start);
      while (row < stop) {
        const std::int64_t count = std::min(per_run, stop - row);
        step(acc, (o * rows_ + row) * columns_ + column, column, count, width);
        row += count;
      }
      for (int s = 0; s < sums; ++s) {
        for (std::int64_t c = 0; c < width; ++c) {
          results[s][c] = combine(results[s][c], static_cast<double>(acc[s][c]));
        }
      }
    }
  }

  std::int64_t outer_;
  std::int64_t rows_;
  std::int64_t columns_;
  std::int64_t block_rows_ = 1;
  std::int64_t blocks_ = 1;
  std::int64_t strips_ = 1;
};

}  // namespace halfstep::backend::cpu::vector

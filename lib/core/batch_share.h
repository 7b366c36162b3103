#pragma once
// The share of a rank in a batch.

#include <algorithm>
#include <cstdint>

namespace halfstep {

/// The samples of a batch that one process computes: all of them, or those of its rank. Rank r of n
/// has [batch * r / n, batch * (r + 1) / n).
struct BatchShare {
  std::int64_t batch = 0;    ///< samples over all ranks
  std::int64_t first = 0;    ///< the first of this rank's, counted within the batch
  std::int64_t rows = 0;     ///< samples that this rank computes: at least one
  std::int64_t counted = 0;  ///< `rows`, or 0 where the batch has too few samples for this rank,
                             ///< which then repeats a sample without weight
  int ranks = 1;             ///< whose results are added
  int rank = 0;              ///< this one
  std::int64_t index = 0;    ///< of the part that the rows are, of `parts` of the rank's
  std::int64_t parts = 1;

  /// Of a process that has no ranks beside it.
  // NOLINTNEXTLINE(google-explicit-constructor): a batch size is the usual share
  BatchShare(std::int64_t samples) : batch(samples), rows(samples), counted(samples) {}
  BatchShare(std::int64_t samples, int number, int of)
      : batch(samples),
        first(samples * number / of),
        rows(samples * (number + 1) / of - first),
        counted(rows),
        ranks(of),
        rank(number) {
    if (rows > 0) return;
    rows = 1;
    first = std::min(first, samples - 1);
  }

  /// The rows of the rank with the fewest, or fewer: as many on all ranks.
  std::int64_t min_rows() const { return std::min(rows, std::max<std::int64_t>(1, batch / ranks)); }

  /// The same part of another rank's rows.
  BatchShare of_rank(int other) const { return BatchShare(batch, other, ranks).part(index, parts); }

  /// Part `i` of `of` of these rows, `of` at most their number, without the others.
  BatchShare part(std::int64_t i, std::int64_t of) const {
    BatchShare result = *this;
    const std::int64_t begin = rows * i / of;
    result.first += begin;
    result.rows = rows * (i + 1) / of - begin;
    result.index = i;
    result.parts = of;
    if (counted > 0) result.counted = result.rows;
    return result;
  }
};

}  // namespace halfstep

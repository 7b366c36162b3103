#pragma once
// The share of a rank in a batch.

#include <algorithm>
#include <cstdint>

namespace halfstep {

/// The samples of a batch that one process computes: all of them, or those of its rank. Rank r of n
/// has samples [batch * r / n, batch * (r + 1) / n). With gradient accumulation, one of its
/// micro-batches.
struct BatchShare {
  std::int64_t batch = 0;             ///< samples over all ranks
  std::int64_t first = 0;             ///< index of the first sample within the batch
  std::int64_t samples = 0;           ///< samples that this rank computes: at least one
  std::int64_t weighted_samples = 0;  ///< `samples`, or 0 where the batch has fewer samples than
                                      ///< ranks: this rank then repeats one with weight 0
  int ranks = 1;
  int rank = 0;
  std::int64_t micro_batch_index = 0;  ///< of `micro_batches` of the rank's share
  std::int64_t micro_batches = 1;

  /// The whole batch, for a run of one process.
  // NOLINTNEXTLINE(google-explicit-constructor): a batch size is the usual share
  BatchShare(std::int64_t size) : batch(size), samples(size), weighted_samples(size) {}
  BatchShare(std::int64_t size, int rank_index, int rank_count)
      : batch(size),
        first(size * rank_index / rank_count),
        samples(size * (rank_index + 1) / rank_count - first),
        weighted_samples(samples),
        ranks(rank_count),
        rank(rank_index) {
    if (samples > 0) return;
    samples = 1;
    first = std::min(first, size - 1);
  }

  /// A lower bound of the samples of every rank, equal on all ranks.
  std::int64_t min_samples() const {
    return std::min(samples, std::max<std::int64_t>(1, batch / ranks));
  }

  /// The same micro-batch of another rank.
  BatchShare of_rank(int other) const {
    return BatchShare(batch, other, ranks).micro_batch(micro_batch_index, micro_batches);
  }

  /// Micro-batch `i` of `count`, which is at most `samples`.
  BatchShare micro_batch(std::int64_t i, std::int64_t count) const {
    BatchShare result = *this;
    const std::int64_t begin = samples * i / count;
    result.first += begin;
    result.samples = samples * (i + 1) / count - begin;
    result.micro_batch_index = i;
    result.micro_batches = count;
    if (weighted_samples > 0) result.weighted_samples = result.samples;
    return result;
  }
};

}  // namespace halfstep

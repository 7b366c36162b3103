#pragma once
// Deterministic batches: the samples of batch k are a pure function of (number of samples, batch
// size, seed, shuffle, k), so a resumed or retried run sees the same batches.

#include <cstdint>
#include <string>
#include <vector>

#include "core/batch_share.h"
#include "core/hash.h"
#include "core/tensor.h"
#include "data/dataset.h"

namespace halfstep::data {

/// One batch, counted from the start of training. The last one of an epoch may be smaller.
struct Batch {
  std::int64_t ordinal = 0;           ///< counted over all epochs, from 0
  std::int64_t epoch = 0;             ///< from 0
  std::int64_t index = 0;             ///< in its epoch, from 0
  std::vector<std::int32_t> samples;  ///< with BatchOptions::partners, then the partner of each

  std::int64_t size() const { return static_cast<std::int64_t>(samples.size()); }
};

struct BatchOptions {
  std::int64_t batch_size = 32;
  std::uint64_t seed = 0;
  bool shuffle = true;  ///< a new permutation each epoch; otherwise file order
  /// The samples, in file order, are split into `batch_size` contiguous streams; a batch has the
  /// next sample of each. The remainder is dropped; with `keep_remainder` the first streams are
  /// longer by one sample. Excludes shuffle.
  bool streams = false;
  bool keep_remainder = false;
  int rank = 0, ranks = 1;  ///< batches hold the samples of one rank; see BatchShare
  /// Mixup: adds to each sample a partner, drawn by a permutation of the batch of all ranks.
  bool partners = false;

  /// Rows of a batch for each of its samples.
  std::int64_t rows_per_sample() const { return partners ? 2 : 1; }
};

/// The order in which samples are visited.
class BatchOrder {
 public:
  /// Errors: InternalError unless samples and batch size are positive; a batch larger than the
  /// samples gives one batch an epoch (see check_batch_size).
  BatchOrder(std::int64_t samples, const BatchOptions& options);

  std::int64_t samples() const { return samples_; }
  const BatchOptions& options() const { return options_; }
  /// ceil(samples / batch size), for streams rounded down unless keep_remainder.
  std::int64_t steps_per_epoch() const { return steps_; }
  /// Samples of the batch over all ranks, without making it.
  std::int64_t batch_samples(std::int64_t ordinal) const;
  /// The samples of the batch that this rank has.
  BatchShare share(std::int64_t ordinal) const {
    return {batch_samples(ordinal), options_.rank, options_.ranks};
  }

  /// Any ordinal >= 0, in any order; cheap within one epoch.
  Batch batch_at(std::int64_t ordinal);
  /// The same into `batch`, whose memory is reused.
  void batch_at(std::int64_t ordinal, Batch& batch);

 private:
  void prepare_epoch(std::int64_t epoch);

  std::int64_t samples_;
  BatchOptions options_;
  std::int64_t steps_;
  std::int64_t epoch_ = -1;  ///< whose permutation is in order_
  std::vector<std::int32_t> order_;
  std::vector<std::int64_t> partners_;  ///< positions in a batch; a member to reuse its memory
};

/// XXH3-128 over the sample indices (int32, little-endian) of the batches from 0 on.
class BatchOrderHash {
 public:
  BatchOrderHash(std::int64_t samples, const BatchOptions& options) : order_(samples, options) {}

  /// The hash of batches [0, batches) in hexadecimal; incremental for growing arguments. Errors:
  /// InternalError for a smaller argument than in an earlier call.
  std::string up_to(std::int64_t batches);

 private:
  BatchOrder order_;
  Hasher hasher_;
  std::int64_t next_ = 0;
};

/// BatchOrder combined with the data. Copies share the data, which must outlive them.
class Loader {
 public:
  /// `scale` multiplies images that are requested as float32.
  Loader(const SplitView& data, const BatchOptions& options, double scale = 1);

  const SplitView& data() const { return data_; }
  std::int64_t steps_per_epoch() const { return order_.steps_per_epoch(); }
  /// Rows of a full batch.
  std::int64_t batch_rows() const {
    return order_.options().batch_size * order_.options().rows_per_sample();
  }
  std::int64_t batch_samples(std::int64_t ordinal) const { return order_.batch_samples(ordinal); }
  Batch batch_at(std::int64_t ordinal) { return order_.batch_at(ordinal); }
  void batch_at(std::int64_t ordinal, Batch& batch) { order_.batch_at(ordinal, batch); }

  /// Copies the batch's samples to the first rows of `images` and `labels`. Shapes: images [>=
  /// size, ...] with as many elements per sample as the data; labels likewise. Dtypes: images as
  /// stored (bytes are copied), or float32 (x * scale); labels as stored. `parallel` distributes
  /// large batches over the thread pool; false on the prefetch thread, since the pool runs one team
  /// at a time. Errors: InternalError when a destination does not fit.
  void fill(const Batch& batch,
            const TensorView& images,
            const TensorView& labels,
            bool parallel = true) const;
  /// Copies the batch's weights to the first elements of `weights`, float32 [>= size]. Errors:
  /// InternalError for data without weights.
  void fill_weights(const Batch& batch, const TensorView& weights) const;

 private:
  SplitView data_;
  BatchOrder order_;
  double scale_;
  std::vector<float> scaled_bytes_;  ///< scale * 0..255 for uint8 images
};

}  // namespace halfstep::data

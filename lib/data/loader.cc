#include "data/loader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <string_view>

#include "core/error.h"
#include "core/parallel.h"
#include "core/philox.h"

namespace halfstep::data {
namespace {

constexpr std::string_view k_order_stream = "batch order";
constexpr std::string_view k_partner_stream = "partners";

void check_destination(const TensorView& from, const TensorView& to, std::int64_t rows) {
  const bool fits =
      to.shape.rank() >= 1 && to.shape[0] >= rows &&
      to.shape.elements(1, to.shape.rank()) == from.shape.elements(1, from.shape.rank());
  // The texts are made only where they are needed: they allocate.
  if (fits) return;
  require(false, "{} rows of {} into {}", rows, to_string(from.shape), to_string(to.shape));
}

}  // namespace

BatchOrder::BatchOrder(std::int64_t samples, const BatchOptions& options)
    : samples_(samples), options_(options), steps_(0) {
  require(samples >= 1 && samples <= std::numeric_limits<std::int32_t>::max(),
          "batches of {} samples",
          samples);
  require(options.batch_size >= 1, "batch size {}", options.batch_size);
  steps_ = samples / options.batch_size;
  const bool leaves_out = options.streams && !options.keep_remainder;
  if (steps_ == 0 || (samples % options.batch_size != 0 && !leaves_out)) ++steps_;
}

std::int64_t BatchOrder::batch_samples(std::int64_t ordinal) const {
  const std::int64_t first = ordinal % steps_ * options_.batch_size;
  return std::min(options_.batch_size, samples_ - first);
}

void BatchOrder::prepare_epoch(std::int64_t epoch) {
  if (epoch_ == epoch) return;
  if (!options_.shuffle && epoch_ >= 0) {
    epoch_ = epoch;
    return;
  }
  order_.resize(static_cast<std::size_t>(samples_));
  std::iota(order_.begin(), order_.end(), 0);
  if (options_.shuffle) {
    RandomStream random(mix(options_.seed, name_key(k_order_stream.data(), k_order_stream.size())),
                        static_cast<std::uint64_t>(epoch));
    shuffle(std::span(order_), random);
  }
  if (options_.streams) {
    // Without a whole batch there is one smaller one.
    const std::int64_t streams = std::min(options_.batch_size, samples_), each = samples_ / streams;
    const std::int64_t longer = options_.keep_remainder ? samples_ % streams : 0;
    for (std::int64_t i = 0; i < each * streams + longer; ++i) {
      const std::int64_t stream = i % streams;
      order_[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(stream * each + std::min(stream, longer) + i / streams);
    }
  }
  epoch_ = epoch;
}

Batch BatchOrder::batch_at(std::int64_t ordinal) {
  Batch batch;
  batch_at(ordinal, batch);
  return batch;
}

void BatchOrder::batch_at(std::int64_t ordinal, Batch& batch) {
  require(ordinal >= 0, "batch {}", ordinal);
  batch.ordinal = ordinal;
  batch.epoch = ordinal / steps_;
  batch.index = ordinal % steps_;
  prepare_epoch(batch.epoch);
  const BatchShare rank = share(ordinal);
  const auto begin = order_.begin() + batch.index * options_.batch_size;
  batch.samples.assign(begin + rank.first, begin + rank.first + rank.samples);
  if (!options_.partners) return;
  partners_.resize(static_cast<std::size_t>(rank.batch));
  std::iota(partners_.begin(), partners_.end(), 0);
  RandomStream random(
      mix(options_.seed, name_key(k_partner_stream.data(), k_partner_stream.size())),
      static_cast<std::uint64_t>(ordinal));
  shuffle(std::span(partners_), random);
  for (std::int64_t i = rank.first; i < rank.first + rank.samples; ++i) {
    batch.samples.push_back(begin[partners_[static_cast<std::size_t>(i)]]);
  }
}

std::string BatchOrderHash::up_to(std::int64_t batches) {
  require(batches >= next_, "batch order hash up to {} after {}", batches, next_);
  for (; next_ < batches; ++next_) {
    const Batch batch = order_.batch_at(next_);
    hasher_.add(std::as_bytes(std::span(batch.samples)));
  }
  return hasher_.hex();
}

Loader::Loader(const SplitView& data, const BatchOptions& options, double scale)
    : data_(data), order_(data.samples(), options), scale_(scale) {
  require(data.labels.shape.rank() >= 1 && data.labels.shape[0] == data.samples(),
          "{} labels for {} images",
          to_string(data.labels.shape),
          data.samples());
  if (data.images.dtype == DType::uint8) {
    scaled_bytes_.resize(256);
    for (std::size_t i = 0; i < 256; ++i) {
      scaled_bytes_[i] = static_cast<float>(static_cast<double>(i) * scale);
    }
  }
}

void Loader::fill(const Batch& batch,
                  const TensorView& images,
                  const TensorView& labels,
                  bool parallel) const {
  check_destination(data_.images, images, batch.size());
  check_destination(data_.labels, labels, batch.size());
  require(labels.dtype == data_.labels.dtype, "labels as {}", name(labels.dtype));
  const bool as_floats = images.dtype == DType::float32;
  require(as_floats || images.dtype == data_.images.dtype,
          "{} images as {}",
          name(data_.images.dtype),
          name(images.dtype));
  const std::size_t image_bytes = sample_bytes(data_.images);
  const std::size_t label_bytes = sample_bytes(data_.labels);
  const std::size_t pixels = image_bytes / size_bytes(data_.images.dtype);
  const auto* all_images = data_.images.as<const std::byte>();
  const auto* all_labels = data_.labels.as<const std::byte>();
  const auto scale = static_cast<float>(scale_);

  const auto copy_rows = [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const auto sample = static_cast<std::size_t>(batch.samples[i]);
      std::memcpy(
          labels.as<std::byte>() + i * label_bytes, all_labels + sample * label_bytes, label_bytes);
      const std::byte* from = all_images + sample * image_bytes;
      if (!as_floats || (data_.images.dtype == DType::float32 && scale == 1)) {
        std::memcpy(images.as<std::byte>() + i * image_bytes, from, image_bytes);
        continue;
      }
      float* to = images.as<float>() + i * pixels;
      if (data_.images.dtype == DType::uint8) {
        for (std::size_t p = 0; p < pixels; ++p) {
          to[p] = scaled_bytes_[std::to_integer<std::size_t>(from[p])];
        }
      } else {
        const auto* floats = reinterpret_cast<const float*>(from);
        for (std::size_t p = 0; p < pixels; ++p) to[p] = floats[p] * scale;
      }
    }
  };
  // The grain is about 256 KiB: less does not pay for waking a thread.
  const auto grain = static_cast<std::int64_t>((std::size_t{1} << 18) / (image_bytes + 1) + 1);
  if (parallel) {
    parallel_for(batch.size(), grain, copy_rows);
  } else {
    copy_rows(0, batch.size());
  }
}

void Loader::fill_weights(const Batch& batch, const TensorView& weights) const {
  require(data_.weighted() && weights.elements() >= batch.size(),
          "weights of {} samples into {}",
          batch.size(),
          weights.elements());
  const auto* all = data_.weights.as<const float>();
  for (std::size_t i = 0; i < batch.samples.size(); ++i) {
    weights.as<float>()[i] = all[batch.samples[i]];
  }
}

}  // namespace halfstep::data

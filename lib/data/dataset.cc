#include "data/dataset.h"

#include <cmath>
#include <span>

#include "core/hash.h"

namespace halfstep::data {
namespace {

TensorView slice(const TensorView& view, std::int64_t first, std::int64_t last) {
  return {view.dtype,
          view.shape.with(0, last - first),
          view.as<std::byte>() + static_cast<std::size_t>(first) * sample_bytes(view)};
}

void add(Hasher& hasher, const Tensor& tensor) {
  hasher.add(fmt::format("{}{};", name(tensor.dtype()), to_string(tensor.shape())));
  hasher.add(std::span<const std::byte>(tensor.as<std::byte>(), tensor.bytes()));
}

}  // namespace

std::size_t sample_bytes(const TensorView& view) {
  return static_cast<std::size_t>(view.shape.elements(1, view.shape.rank())) *
         size_bytes(view.dtype);
}

SplitView view(const Split& split) {
  return {split.images.view(), split.labels.view(), split.weights.view()};
}

SplitView slice(const SplitView& split, std::int64_t first, std::int64_t last) {
  require(0 <= first && first <= last && last <= split.samples(),
          "rows [{}, {}) of {}",
          first,
          last,
          split.samples());
  return {slice(split.images, first, last),
          slice(split.labels, first, last),
          split.weighted() ? slice(split.weights, first, last) : TensorView{}};
}

std::int64_t validation_split_at(std::int64_t samples, double fraction, const Where& where) {
  if (fraction == 0) return samples;
  if (!(fraction > 0 && fraction < 1)) {
    throw UserError(ErrorKind::config,
                    where,
                    fmt::format("validation_split must be in [0, 1), got {}", fraction));
  }
  const auto at =
      static_cast<std::int64_t>(std::floor(static_cast<double>(samples) * (1.0 - fraction)));
  if (at <= 0 || at >= samples) {
    throw UserError(ErrorKind::config,
                    where,
                    fmt::format("validation_split {} of {} samples leaves none for {}",
                                fraction,
                                samples,
                                at <= 0 ? "training" : "validation"));
  }
  return at;
}

void check_batch_size(std::int64_t batch_size, std::int64_t samples, const Where& where) {
  if (batch_size < 1) {
    throw UserError(
        ErrorKind::config, where, fmt::format("batch_size must be at least 1, got {}", batch_size));
  }
  if (batch_size > samples) {
    throw UserError(
        ErrorKind::config,
        where,
        fmt::format("batch_size {} is larger than the {} training samples", batch_size, samples),
        fmt::format("use at most {}", samples));
  }
}

std::string content_hash(const Dataset& dataset) {
  Hasher hasher;
  for (const Split* split : {&dataset.train, &dataset.test}) {
    if (split->samples() == 0) continue;
    add(hasher, split->images);
    add(hasher, split->labels);
    if (split->weighted()) add(hasher, split->weights);
  }
  return hasher.hex();
}

}  // namespace halfstep::data

#include <cmath>
#include <cstring>
#include <limits>
#include <span>

#include "data/load_dataset.h"

namespace halfstep::data {
namespace {

/// The labels as int32, from any integer tensor.
Tensor to_labels(const Tensor& from, const std::string& what) {
  Tensor to(DType::int32, from.shape());
  if (from.dtype() == DType::int64) {
    for (std::int64_t i = 0; i < from.elements(); ++i) {
      const std::int64_t label = from.as<std::int64_t>()[i];
      if (label < std::numeric_limits<std::int32_t>::min() ||
          label > std::numeric_limits<std::int32_t>::max()) {
        throw UserError(
            ErrorKind::data, {}, fmt::format("{}: sample {} has label {}", what, i, label));
      }
    }
  }
  convert(from.view(), to.view());
  return to;
}

Tensor first_rows(const Tensor& from, std::int64_t count) {
  Tensor to(from.dtype(), from.shape().with(0, count));
  std::memcpy(to.as<std::byte>(), from.as<std::byte>(), to.bytes());
  return to;
}

/// Weights become float32 [N].
void normalise_weights(Split& split, const std::string& what) {
  const Shape& weights = split.weights.shape();
  if (!split.weighted()) return;
  const std::int64_t samples = split.images.shape()[0];
  if (weights[0] != samples || weights.elements() != samples) {
    throw UserError(ErrorKind::data,
                    {},
                    fmt::format("{}: has {} samples, but sample weights of shape {}",
                                what,
                                samples,
                                to_string(weights)),
                    "one number for each sample is wanted");
  }
  split.weights.reshape({samples});
  if (split.weights.dtype() != DType::float32) split.weights = to_float32(split.weights);
  const std::span<const float> values = split.weights.span<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] >= 0 && std::isfinite(values[i])) continue;
    throw UserError(ErrorKind::data,
                    {},
                    fmt::format("{}: sample {} has the weight {}", what, i, values[i]),
                    "weights are at least 0");
  }
}

}  // namespace

Tensor to_float32(const Tensor& from) {
  Tensor to(DType::float32, from.shape());
  convert(from.view(), to.view());
  return to;
}

void check_finite(const Tensor& tensor, std::string_view kind, const std::string& what) {
  if (tensor.dtype() != DType::float32) return;
  const std::span<const float> values = tensor.span<float>();
  std::size_t first = values.size();
  std::size_t count = 0;
  for (std::size_t i = values.size(); i-- > 0;) {
    if (std::isfinite(values[i])) continue;
    first = i;
    ++count;
  }
  if (count == 0) return;
  const std::size_t per_sample = values.size() / static_cast<std::size_t>(tensor.shape()[0]);
  throw UserError(ErrorKind::data,
                  {},
                  fmt::format("{}: the {} of sample {} have {} (value {}; {} in all)",
                              what,
                              kind,
                              first / per_sample,
                              values[first],
                              first % per_sample,
                              count));
}

void normalise(Split& split, const std::string& what, bool class_numbers) {
  const auto fail = [&](const std::string& message) {
    throw UserError(ErrorKind::data, {}, fmt::format("{}: {}", what, message));
  };
  const Shape& images = split.images.shape();
  const Shape& labels = split.labels.shape();
  if (images.rank() == 0 || labels.rank() == 0) fail("has a single number where samples should be");
  if (images[0] != labels[0])
    fail(fmt::format("has {} images but {} labels", images[0], labels[0]));
  if (images[0] == 0) fail("has no samples");
  if (images.elements() == 0 || labels.elements() == 0) {
    fail(fmt::format(
        "has empty samples: images {}, labels {}", to_string(images), to_string(labels)));
  }
  if (split.images.dtype() != DType::uint8 && split.images.dtype() != DType::float32) {
    split.images = to_float32(split.images);
  }
  if (images.rank() == 1) split.images.reshape({images[0], 1});
  if (images.rank() == 3) split.images.reshape({images[0], images[1], images[2], 1});
  split.labels = normalise_labels(std::move(split.labels), what, class_numbers);
  normalise_weights(split, what);
}

Tensor normalise_labels(Tensor labels, const std::string& what, bool class_numbers) {
  const Shape shape = labels.shape();
  // Masks of images are stored with an axis of one channel too.
  if (shape.back() == 1 && (shape.rank() == 2 || (shape.rank() > 2 && class_numbers))) {
    labels.reshape(Shape(shape.dims().first(shape.rank() - 1)));
  }
  if (is_floating(labels.dtype()) || (labels.shape().rank() > 1 && !class_numbers)) {
    return labels.dtype() == DType::float32 ? std::move(labels) : to_float32(labels);
  }
  return labels.dtype() == DType::int32 ? std::move(labels) : to_labels(labels, what);
}

void check_finite(const Split& split, const std::string& what) {
  check_finite(split.images, "images", what);
  check_finite(split.labels, "labels", what);
}

void keep_first(Split& split, std::int64_t count, const std::string& what, const Where& where) {
  const std::int64_t samples = split.samples();
  if (count < 1 || count > samples) {
    throw UserError(
        ErrorKind::config,
        where,
        fmt::format("{} samples of {} were asked for; it has {}", count, what, samples));
  }
  if (count == samples) return;
  split.images = first_rows(split.images, count);
  split.labels = first_rows(split.labels, count);
  if (split.weighted()) split.weights = first_rows(split.weights, count);
}

}  // namespace halfstep::data

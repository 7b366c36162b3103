#include "study/random_data.h"

#include "core/philox.h"

namespace halfstep::study {

data::Dataset random_dataset(const Shape& sample,
                             std::int64_t classes,
                             std::int64_t samples,
                             std::uint64_t seed) {
  require(classes >= 1 && samples >= 1, "{} samples of {} classes", samples, classes);
  std::vector<std::int64_t> extents{samples};
  extents.insert(extents.end(), sample.dims().begin(), sample.dims().end());
  data::Dataset dataset;
  dataset.name = "random";
  dataset.source = "generated";
  dataset.classes = classes;
  dataset.sample_shape = sample;
  dataset.scale = 1.0 / 255.0;
  dataset.train.images = Tensor(DType::uint8, Shape(extents));
  dataset.train.labels = Tensor(DType::int32, {samples});
  RandomStream pixels(seed, 0);
  for (std::uint8_t& pixel : dataset.train.images.span<std::uint8_t>()) {
    pixel = static_cast<std::uint8_t>(pixels.next() & 0xFFU);
  }
  RandomStream labels(seed, 1);
  for (std::int32_t& label : dataset.train.labels.span<std::int32_t>()) {
    label = static_cast<std::int32_t>(labels.below(static_cast<std::uint64_t>(classes)));
  }
  return dataset;
}

}  // namespace halfstep::study

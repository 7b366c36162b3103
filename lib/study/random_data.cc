#include "study/random_data.h"

#include <algorithm>

#include "core/philox.h"
#include "nn/step_graph.h"

namespace halfstep::study {
namespace {

Tensor with_samples(const Tensor& like, std::int64_t samples) {
  return Tensor(like.dtype(), like.shape().with(0, samples));
}

void fill(const Tensor& tensor, std::int64_t classes, RandomStream random) {
  if (tensor.dtype() == DType::uint8) {
    for (std::uint8_t& byte : tensor.span<std::uint8_t>()) {
      byte = static_cast<std::uint8_t>(random.next() & 0xFFU);
    }
  } else if (tensor.dtype() == DType::int32) {
    for (std::int32_t& label : tensor.span<std::int32_t>()) {
      label = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(classes)));
    }
  } else {
    for (float& value : tensor.span<float>()) {
      value = random.uniform();
    }
  }
}

/// The values [first, first + part.shape.elements()) of each sample.
void fill_indices(const Tensor& tensor,
                  std::int64_t first,
                  const data::InputPart& part,
                  RandomStream random) {
  const bool bytes = tensor.dtype() == DType::uint8;
  const std::int64_t limit =
      bytes ? std::min<std::int64_t>(part.index_limit, 256) : part.index_limit;
  const std::int64_t each = tensor.elements() / tensor.shape()[0], count = part.shape.elements();
  for (std::int64_t i = 0; i < tensor.shape()[0] * count; ++i) {
    const std::int64_t at = i / count * each + first + i % count;
    const std::uint64_t index = random.below(static_cast<std::uint64_t>(limit));
    if (bytes) {
      tensor.as<std::uint8_t>()[at] = static_cast<std::uint8_t>(index);
    } else {
      tensor.as<float>()[at] = static_cast<float>(index);
    }
  }
}

}  // namespace

std::vector<data::InputPart> input_parts(const nn::Model& model) {
  std::vector<data::InputPart> parts;
  for (const std::int64_t limit : nn::index_limits(model)) {
    const nn::Model::Input& input = model.inputs[parts.size()];
    parts.push_back({input.name, input.shape, limit});
  }
  return parts;
}

data::Dataset describe_data(const config::RunSpec& spec) {
  Diagnostics diagnostics;
  const nn::StepSpec step = nn::read_step_spec(spec, diagnostics);
  diagnostics.throw_if_any();
  data::Dataset dataset;
  dataset.name = k_random_name;
  dataset.source = "generated";
  dataset.sample_shape = nn::sample_shape(step.model);
  dataset.scale = spec.data.scale.value_or(1.0 / 255.0);
  std::vector<std::int64_t> extents{0};
  extents.insert(extents.end(), dataset.sample_shape.begin(), dataset.sample_shape.end());
  dataset.inputs = input_parts(step.model);
  const bool indices = std::ranges::any_of(
      dataset.inputs, [](const data::InputPart& part) { return part.index_limit > 0; });
  if (indices) dataset.scale = 1;
  dataset.train.images = Tensor(indices ? DType::float32 : DType::uint8, Shape(extents));
  const std::int64_t outputs = step.output.shape.elements();
  const bool events = step.loss->label_kind() == nn::LabelKind::events;
  if (spec.regression() || (events && outputs > 1)) {
    dataset.train.labels =
        outputs == 1 ? Tensor(DType::float32, {0}) : Tensor(DType::float32, {0, outputs});
  } else {
    const bool classes = step.loss->label_kind() == nn::LabelKind::classes;
    dataset.classes = events ? 2 : classes ? step.output.shape.back() : outputs;
    dataset.train.labels = Tensor(DType::int32, {0});
    if (classes && dataset.classes != outputs) {
      dataset.train.labels = Tensor(DType::int32, {0, outputs / dataset.classes});
    }
  }
  if (spec.data.sample_weight) dataset.train.weights = Tensor(DType::float32, {0});
  return dataset;
}

data::Dataset random_samples(const data::Dataset& description,
                             std::int64_t samples,
                             std::uint64_t seed) {
  require(samples >= 1, "{} samples", samples);
  data::Dataset dataset;
  dataset.name = k_random_name;
  dataset.source = "generated";
  dataset.classes = std::max<std::int64_t>(1, description.classes);
  dataset.class_names = description.class_names;
  dataset.sample_shape = description.sample_shape;
  dataset.scale = description.scale;
  dataset.train.images = with_samples(description.train.images, samples);
  dataset.train.labels = with_samples(description.train.labels, samples);
  dataset.inputs = description.inputs;
  fill(dataset.train.images, dataset.classes, RandomStream(seed, 0));
  std::int64_t first = 0;
  for (const data::InputPart& part : dataset.inputs) {
    if (part.index_limit > 0) {
      fill_indices(dataset.train.images, first, part, RandomStream(seed, 0));
    }
    first += part.shape.elements();
  }
  fill(dataset.train.labels, dataset.classes, RandomStream(seed, 1));
  if (description.train.weighted()) {
    dataset.train.weights = Tensor(DType::float32, {samples});
    std::ranges::fill(dataset.train.weights.span<float>(), 1.0F);
  }
  dataset.classes = description.classes;
  return dataset;
}

}  // namespace halfstep::study

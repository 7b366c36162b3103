#include "study/random_data.h"

#include <algorithm>

#include "core/philox.h"
#include "core/ranges.h"
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

/// The values [first, first + count) of each sample, whole numbers below the limit.
void fill_indices(const Tensor& tensor,
                  std::int64_t first,
                  std::int64_t count,
                  std::int64_t limit,
                  RandomStream random) {
  const bool bytes = tensor.dtype() == DType::uint8;
  if (bytes) limit = std::min<std::int64_t>(limit, 256);
  const std::int64_t each = tensor.elements() / tensor.shape()[0];
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

/// Labels that the loss of an output takes.
data::LabelSpec label_of(const nn::TrainedOutput& output) {
  const Shape& shape = output.form.shape;
  const std::int64_t outputs = shape.elements();
  const nn::LabelKind kind = output.loss->label_kind();
  const bool events = of_events(kind), classes = kind == nn::LabelKind::classes;
  data::LabelSpec part{output.key, classes};
  part.absent = !output.is_labelled();
  if (part.absent) {
    part.shape = {0};
    return part;
  }
  const bool positions = !classes && shape.rank() > 1;
  if (output.has_values() || (events && outputs > 1) || positions) {
    if (outputs > 1) part.shape = {outputs};
    return part;
  }
  part.dtype = DType::int32;
  part.classes = events ? 2 : classes ? shape.back() : outputs;
  if (classes && part.classes != outputs) part.shape = {outputs / part.classes};
  return part;
}

}  // namespace

std::vector<data::InputSpec> input_parts(const nn::Model& model) {
  std::vector<data::InputSpec> parts;
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
      dataset.inputs, [](const data::InputSpec& part) { return part.index_limit > 0; });
  if (indices) dataset.scale = 1;
  dataset.train.images = Tensor(indices ? DType::float32 : DType::uint8, Shape(extents));
  std::vector<data::LabelSpec> labels = mapped<data::LabelSpec>(step.outputs, label_of);
  std::int64_t values = 0;
  for (const data::LabelSpec& part : labels) values += part.shape.elements();
  std::vector<std::int64_t> of_labels{0};
  if (labels.size() > 1) {
    of_labels.push_back(values);
    dataset.outputs = std::move(labels);
    dataset.train.labels = Tensor(DType::float32, Shape(of_labels));
  } else {
    dataset.classes = labels[0].classes;
    of_labels.insert(of_labels.end(), labels[0].shape.begin(), labels[0].shape.end());
    dataset.train.labels = Tensor(labels[0].dtype, Shape(of_labels));
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
  for (const data::InputSpec& part : dataset.inputs) {
    if (part.index_limit > 0) {
      fill_indices(dataset.train.images,
                   first,
                   part.shape.elements(),
                   part.index_limit,
                   RandomStream(seed, 0));
    }
    first += part.shape.elements();
  }
  fill(dataset.train.labels, dataset.classes, RandomStream(seed, 1));
  dataset.outputs = description.outputs;
  first = 0;
  for (const data::LabelSpec& part : dataset.outputs) {
    const std::int64_t count = part.shape.elements();
    if (part.classes > 0) {
      fill_indices(dataset.train.labels, first, count, part.classes, RandomStream(seed, 1));
    }
    first += count;
  }
  if (description.train.weighted()) {
    dataset.train.weights = Tensor(DType::float32, {samples});
    std::ranges::fill(dataset.train.weights.span<float>(), 1.0F);
  }
  dataset.classes = description.classes;
  return dataset;
}

}  // namespace halfstep::study

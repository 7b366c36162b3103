// Random numbers, flips and translations.

#include "backend/cuda/kernels/random.h"

#include "backend/cuda/kernels/image.h"
#include "backend/cuda/plugin/prepare.h"

namespace halfstep::backend::cuda::plugin {
namespace {

std::uint64_t word(const Facts& node, std::string_view attr) {
  return static_cast<std::uint64_t>(node.attrs.get<std::int64_t>(attr));
}

kernels::ImageBatch image_batch(const Facts& node) {
  const Shape& x = node.input(0).shape;
  return {
      .dtype = node.input(0).dtype, .batch = x[0], .rows = x[1], .columns = x[2], .channels = x[3]};
}

void point(kernels::ImageBatch& images, const Addresses& a) {
  images.x = a.in[0];
  images.ordinal = a.input<std::int64_t>(1);
  images.y = a.out[0];
}

Work prepare_uniform(const Facts& node, const Machine& machine) {
  kernels::UniformParams params{.seed = word(node, "seed"),
                                .stream = word(node, "stream"),
                                .elements = node.output().shape.elements(),
                                .first = node.attrs.get<std::int64_t>("first")};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    params.ordinal = a.input<std::int64_t>(0);
    params.y = a.output<float>();
    kernels::uniform(stream, params);
  }};
}

Work prepare_random_flip(const Facts& node, const Machine& machine) {
  kernels::FlipParams params{.flip = graph::ops::ImageFlip(node.attrs),
                             .images = image_batch(node)};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    point(params.images, a);
    kernels::random_flip(stream, params);
  }};
}

Work prepare_random_translation(const Facts& node, const Machine& machine) {
  kernels::TranslationParams params{.translation = graph::ops::ImageTranslation(node.attrs),
                                    .images = image_batch(node)};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    point(params.images, a);
    kernels::random_translation(stream, params);
  }};
}

}  // namespace

std::vector<Row> random_rows() {
  return {
      {"cuda/random_flip", prepare_random_flip},
      {"cuda/random_translation", prepare_random_translation},
      {"cuda/uniform", prepare_uniform},
  };
}

}  // namespace halfstep::backend::cuda::plugin

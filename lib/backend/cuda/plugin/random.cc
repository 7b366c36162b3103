// Random numbers, flips and translations.

#include "backend/cuda/kernels/random.h"

#include "backend/cuda/kernels/image.h"
#include "backend/cuda/plugin/prepare.h"

namespace halfstep::backend::cuda::plugin {
namespace {

std::uint64_t unsigned_attr(const NodeView& node, std::string_view attr) {
  return static_cast<std::uint64_t>(node.attrs().get<std::int64_t>(attr));
}

kernels::ImageBatch image_batch(const NodeView& node) {
  const Shape& x = node.input(0).shape;
  return {
      .dtype = node.input(0).dtype, .batch = x[0], .rows = x[1], .columns = x[2], .channels = x[3]};
}

void point(kernels::ImageBatch& images, const Args& a) {
  images.x = a.in[0].data;
  images.ordinal = a.in[1].as<std::int64_t>();
  images.y = a.out[0].data;
}

PreparedKernel prepare_uniform(const NodeView& node, const DeviceContext& context) {
  kernels::UniformParams params{.seed = unsigned_attr(node, "seed"),
                                .stream = unsigned_attr(node, "stream"),
                                .elements = node.output().shape.elements(),
                                .first = node.attrs().get<std::int64_t>("first")};
  return {[=, stream = context.stream()](const Args& a) mutable {
    params.ordinal = a.in[0].as<std::int64_t>();
    params.y = a.out[0].as<float>();
    kernels::uniform(stream, params);
  }};
}

PreparedKernel prepare_random_flip(const NodeView& node, const DeviceContext& context) {
  kernels::FlipParams params{.flip = graph::ops::ImageFlip(node.attrs()),
                             .images = image_batch(node)};
  return {[=, stream = context.stream()](const Args& a) mutable {
    point(params.images, a);
    kernels::random_flip(stream, params);
  }};
}

PreparedKernel prepare_random_translation(const NodeView& node, const DeviceContext& context) {
  kernels::TranslationParams params{.translation = graph::ops::ImageTranslation(node.attrs()),
                                    .images = image_batch(node)};
  return {[=, stream = context.stream()](const Args& a) mutable {
    point(params.images, a);
    kernels::random_translation(stream, params);
  }};
}

}  // namespace

std::vector<Implementation> random_kernels() {
  return {
      {"cuda/random_flip", prepare_random_flip},
      {"cuda/random_translation", prepare_random_translation},
      {"cuda/uniform", prepare_uniform},
  };
}

}  // namespace halfstep::backend::cuda::plugin

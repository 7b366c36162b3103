// Random numbers, flips and translations.

#include "backend/cuda/kernels/random.h"

#include <array>

#include "backend/cuda/kernels/image.h"
#include "backend/cuda/plugin/prepare.h"
#include "core/error.h"

namespace halfstep::backend::cuda::plugin {
namespace {

std::uint64_t word(const Facts& node, std::string_view attr) {
  return static_cast<std::uint64_t>(node.attrs.get<std::int64_t>(attr));
}

kernels::ImageBatch image_batch(const Facts& node) {
  const Shape& x = node.input(0).shape;
  return {.dtype = node.input(0).dtype,
          .batch = x[0],
          .rows = x[1],
          .columns = x[2],
          .channels = x[3],
          .seed = word(node, "seed"),
          .stream = word(node, "stream"),
          .first = node.attrs.get<std::int64_t>("first")};
}

void point(kernels::ImageBatch& images, const Addresses& a) {
  images.x = a.in[0];
  images.ordinal = a.input<std::int64_t>(1);
  images.y = a.out[0];
}

kernels::FillMode fill_named(std::string_view name) {
  using kernels::FillMode;
  constexpr std::array<std::pair<std::string_view, FillMode>, 4> k_modes{
      {{"constant", FillMode::constant},
       {"nearest", FillMode::nearest},
       {"reflect", FillMode::reflect},
       {"wrap", FillMode::wrap}}};
  for (const auto& [word, mode] : k_modes) {
    if (word == name) return mode;
  }
  require(false, "no fill mode '{}'", name);
  return FillMode::constant;
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
  const auto& mode = node.attrs.get<std::string>("mode");
  kernels::FlipParams params{.images = image_batch(node),
                             .vertical = mode.find("vertical") != std::string::npos,
                             .horizontal = mode.find("horizontal") != std::string::npos};
  return {[=, stream = machine.stream()](const Addresses& a) mutable {
    point(params.images, a);
    kernels::random_flip(stream, params);
  }};
}

Work prepare_random_translation(const Facts& node, const Machine& machine) {
  const auto real = [&](std::string_view name) {
    return static_cast<float>(node.attrs.get<double>(name));
  };
  kernels::TranslationParams params{
      .images = image_batch(node),
      .height_low = real("height_low"),
      .height_high = real("height_high"),
      .width_low = real("width_low"),
      .width_high = real("width_high"),
      .fill_value = real("fill_value"),
      .fill = fill_named(node.attrs.get<std::string>("fill_mode")),
      .bilinear = node.attrs.get<std::string>("interpolation") == "bilinear"};
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

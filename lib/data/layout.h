#pragma once
// The order of the axes in which files store a sample. halfstep computes on [height, width,
// channels]; samples stored as [channels, height, width] are transposed when they are loaded.

#include <optional>
#include <string>

#include "config/data_spec.h"
#include "core/error.h"
#include "core/shape.h"
#include "core/tensor.h"

namespace halfstep::data {

using Layout = config::DataLayout;

/// [height, width, channels] of [channels, height, width].
Shape channels_last(const Shape& s);

struct LayoutHints {
  std::optional<Layout> declared{};
  /// The expected shape of a sample, [height, width, channels] where it has channels.
  std::optional<Shape> wanted{};
  /// The default where both layouts fit `wanted`; without it, that is an error.
  std::optional<Layout> otherwise{};
  Where where{};
};

/// The layout of samples stored with this shape. Without a declaration it is the one that gives
/// `wanted`; without `wanted`, for three axes, the one with 1, 3 or 4 channels; flat samples have a
/// layout where `wanted` has several channels. Nothing: the samples have no channels, or the layout
/// cannot be inferred and makes no difference. Errors: UserError(config) where both fit, naming
/// both; also where samples and `wanted` agree but both look channels-first, because the layers
/// would interpret the first axis as the height.
std::optional<Layout> find_layout(const Shape& sample, const LayoutHints& hints);

/// The layout of labels stored with this shape, where they are images: the one that gives
/// `hints.wanted`, the shape of the model's output, else the declared one, else `hints.otherwise`,
/// that of the samples. Errors: UserError(config) where both fit and neither is given.
std::optional<Layout> find_label_layout(const Shape& label, const LayoutHints& hints);

/// "stored as [3, 8, 8], read as nchw" of samples that to_nhwc gave the shape `sample`.
std::string stored_as(const Shape& sample, Layout layout);

/// The images with samples in [height, width, channels]. Flat samples become `wanted` where that
/// has three axes and as many elements; other shapes without three axes are unchanged. Shapes:
/// images [N, ...].
Tensor to_nhwc(Tensor images, std::optional<Layout> stored, const std::optional<Shape>& wanted);

}  // namespace halfstep::data

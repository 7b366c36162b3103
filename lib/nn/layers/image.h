#pragma once
// Helpers of layers that work on images [batch, height, width, channels], on sequences [batch,
// steps, channels] as images of one row, and on volumes [batch, depth, height, width, channels].

#include <optional>
#include <string_view>
#include <type_traits>

#include "nn/layers/table.h"

namespace halfstep::nn {

enum class Padding { valid, same };

inline constexpr std::array k_paddings{
    config::Named{Padding::valid, "valid"},
    config::Named{Padding::same, "same"},
};

/// The terms of the reference for windows over sequences, images and volumes.
struct WindowTerms {
  std::string_view extents, cells, unit, moves, extent, whole;
};

/// The terms for extents of type T: one number, a Pair or a Triple.
template <class T>
constexpr WindowTerms window_terms() {
  if constexpr (std::is_same_v<T, config::Triple>) {
    return {"Depth, height and width", "Cells", "cells", "", "depth", "volume"};
  } else if constexpr (std::is_same_v<T, config::Pair>) {
    constexpr std::string_view k_moves = ", downwards and to the right";
    return {"Height and width", "Pixels", "pixels", k_moves, "height", "image"};
  } else {
    return {"Length", "Steps", "steps", "", "steps", "sequence"};
  }
}

/// TensorFlow's name of a padding: VALID or SAME.
std::string to_tensorflow(Padding padding);

/// [1, height, width, 1], as TensorFlow writes strides, window sizes and dilations.
std::vector<std::int64_t> over_image(const config::Pair& pair);

/// `data_format`: halfstep implements channels_last only, also the default.
struct DataFormatField {
  enum class Value { channels_last, channels_first };
  std::optional<Value> value;

  void field(config::Fields& f);
  void check(Diagnostics& diagnostics, const Where& where) const;
};

/// The shape of a batch of images. Errors: UserError(config) when x does not have rank 4.
Shape image_shape(const LayerContext& c, graph::Value x);

/// The shape of a batch of sequences. Errors: UserError(config) when x does not have rank 3.
Shape sequence_shape(const LayerContext& c, graph::Value x);

/// The shape of a batch of volumes. Errors: UserError(config) when x does not have rank 5.
Shape volume_shape(const LayerContext& c, graph::Value x);

/// Sequences as images [batch, 1, steps, channels]. Errors: as sequence_shape.
graph::Value sequence_as_image(const LayerContext& c, graph::Value x);
/// Images of one row as sequences.
graph::Value image_as_sequence(const LayerContext& c, graph::Value x);

/// x with zeros before and after each of its axes between the first and the last one: a pair each.
graph::Value zero_pad(graph::Builder& b, graph::Value x, std::span<const config::Pair> sides);

}  // namespace halfstep::nn

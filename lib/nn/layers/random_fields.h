#pragma once
// The fields that layers share that change images at random.

#include <array>
#include <vector>

#include "nn/layers/image.h"
#include "nn/layers/random_elements.h"

namespace halfstep::nn {

enum class FillMode { constant, nearest, reflect, wrap };
inline constexpr std::array k_fill_modes{
    config::Named{FillMode::constant, "constant"},
    config::Named{FillMode::nearest, "nearest"},
    config::Named{FillMode::reflect, "reflect"},
    config::Named{FillMode::wrap, "wrap"},
};

enum class Interpolation { bilinear, nearest };
inline constexpr std::array k_interpolations{
    config::Named{Interpolation::bilinear, "bilinear"},
    config::Named{Interpolation::nearest, "nearest"},
};

/// Images that differ from sample to sample in training: the draws are a function of (run seed,
/// layer, batch ordinal, number of the sample in the batch).
struct RandomImages {
  DataFormatField data_format;
  RandomElements draws;

  void common_fields(config::Fields& f);
};

/// The values of pixels that are moved to positions between others, or from beyond the edges.
struct Resampling {
  FillMode fill_mode = FillMode::reflect;
  Interpolation interpolation = Interpolation::bilinear;
  double fill_value = 0;  ///< of FillMode::constant

  void fields(config::Fields& f);
};

/// Reads a share s as [-|s|, |s|], or [low, high] in either order, within [-1, 1]. Errors go to
/// `out`, and a null node leaves the range as it is.
void read_range(const config::Node& node, std::vector<double>& range, Diagnostics& out);

}  // namespace halfstep::nn

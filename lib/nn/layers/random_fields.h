#pragma once
// The fields that layers share that move the pixels of images at random.

#include <array>
#include <vector>

#include "nn/layers/table.h"

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

void fill_mode_field(config::Fields& f, FillMode& fill_mode);
void interpolation_field(config::Fields& f, Interpolation& interpolation);

/// Reads a share s as [-|s|, |s|], or [low, high] in either order, within [-1, 1]. Errors go to
/// `out`, and a null node leaves the range as it is.
void read_range(const config::Node& node, std::vector<double>& range, Diagnostics& out);

}  // namespace halfstep::nn

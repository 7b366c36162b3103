#pragma once
// The cells of an image under the taps of a convolution.

#include <algorithm>
#include <cstdint>

#include "backend/cuda/kernels/device/element.h"
#include "backend/cuda/kernels/few_taps.h"

namespace halfstep::backend::cuda::kernels {

/// A tap of the filter: its cell from the first one of a window, and its offset from that.
struct Tap {
  std::int32_t row, column, offset;
};

/// The window of one position of the outputs.
template <class T>
struct Window {
  const T* first;
  std::int32_t y, x;  ///< of the first cell, which may be outside of the image
};

/// The windows of all positions, counted along images, rows and columns.
template <class T>
struct Windows {
  const T* x = nullptr;
  std::int64_t positions = 0;
  std::int64_t out_height = 0, out_width = 0, channels = 0;
  std::int32_t height = 0, width = 0, stride_y = 0, stride_x = 0, pad_y = 0, pad_x = 0;
  std::int64_t row_step = 0, image_step = 0;  ///< from behind a row, or an image, to the next one
  int taps = 0;
  Tap tap[FewTaps::k_max] = {};

  /// With FewTaps::k_max taps, or those that there are, from number `first_tap` on.
  Windows(const graph::ops::ConvGeometry& g, const void* image, std::int64_t first_tap = 0)
      : x(static_cast<const T*>(image)),
        positions(g.batch * g.window.height.output * g.window.width.output),
        out_height(g.window.height.output),
        out_width(g.window.width.output),
        channels(g.inputs),
        height(narrow(g.window.height.input)),
        width(narrow(g.window.width.input)),
        stride_y(narrow(g.window.height.stride)),
        stride_x(narrow(g.window.width.stride)),
        pad_y(narrow(g.window.height.pad_before)),
        pad_x(narrow(g.window.width.pad_before)),
        row_step((g.window.height.stride * g.window.width.input -
                  g.window.width.output * g.window.width.stride) *
                 g.inputs),
        image_step((g.window.height.input - g.window.height.output * g.window.height.stride) *
                   g.window.width.input * g.inputs) {
    const std::int64_t all = g.window.height.size * g.window.width.size * channels;
    for (std::int64_t t = first_tap; t < std::min(first_tap + FewTaps::k_max, all); ++t) {
      const std::int64_t position = t / channels;
      const std::int64_t row = position / g.window.width.size * g.window.height.dilation;
      const std::int64_t column = position % g.window.width.size * g.window.width.dilation;
      tap[taps++] = {narrow(row),
                     narrow(column),
                     narrow((row * g.window.width.input + column) * channels + t % channels)};
    }
  }

  __device__ Window<T> at(std::int64_t position) const {
    const Divided row = divide(position, out_width);
    const Divided image = divide(row.quotient, out_height);
    const auto top = static_cast<std::int32_t>(image.remainder) * stride_y - pad_y;
    const auto left = static_cast<std::int32_t>(row.remainder) * stride_x - pad_x;
    return {x + ((image.quotient * height + top) * width + left) * channels, top, left};
  }

  /// The window of the position behind that of `window`.
  __device__ Window<T> after(Window<T> window) const {
    window.x += stride_x;
    window.first += stride_x * channels;
    if (window.x + pad_x < out_width * stride_x) return window;
    window.x = -pad_x;
    window.y += stride_y;
    window.first += row_step;
    if (window.y + pad_y < out_height * stride_y) return window;
    window.y = -pad_y;
    window.first += image_step;
    return window;
  }

  /// Whether all cells of a window are inside of the image, where these are all taps.
  __device__ bool whole(const Window<T>& window) const {
    const Tap& last = tap[taps - 1];
    return window.y >= 0 && window.x >= 0 && window.y + last.row < height &&
           window.x + last.column < width;
  }

  /// The cell under tap `t`; 0 outside of the image, or if not `wanted`.
  __device__ T cell(const Window<T>& window, int t, bool wanted = true) const {
    // A cell before the first one is a large unsigned number.
    const auto row = static_cast<std::uint32_t>(window.y + tap[t].row);
    const auto column = static_cast<std::uint32_t>(window.x + tap[t].column);
    const bool inside = wanted && row < static_cast<std::uint32_t>(height) &&
                        column < static_cast<std::uint32_t>(width);
    return inside ? window.first[tap[t].offset] : T{};
  }

 private:
  static std::int32_t narrow(std::int64_t n) { return static_cast<std::int32_t>(n); }
};

constexpr unsigned k_max_packs = 8;  ///< of output channels in a block

/// Packs of `width` output channels that a block computes: a power of two.
inline unsigned packs_of(std::int64_t outputs, int width) {
  unsigned packs = 1;
  while (packs < k_max_packs && packs * width < outputs) packs *= 2;
  return packs;
}

}  // namespace halfstep::backend::cuda::kernels

#pragma once
// Grids: padded images in a workspace, the operands of the GEMMs of conv.cc and conv_filter.cc.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backend/cpu/packed/conv_micro_kernels.h"
#include "backend/cpu/workspace_layout.h"
#include "backend/kernel.h"
#include "core/parallel.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cpu::packed {

using graph::ops::ConvGeometry;
using graph::ops::WindowAxis;
using I64 = std::int64_t;

inline constexpr I64 k_k_block = 32;     // values
inline constexpr I64 k_line_bytes = 64;  // of a cache line, and of a k block
inline constexpr I64 k_value_bytes = 2;  // of bfloat16 and float16

/// Of a convolution, or of its gradient with respect to x or the filter.
ConvGeometry conv_geometry_of(const NodeView& node);
/// 1 for bfloat16, 3 or 4 for float16.
I64 partial_products_of(const NodeView& node);
/// Parts of the batch, each computed by one thread: one for each 2^20 operations, at most `threads`
/// and at most the batch size.
I64 parts_of_batch(const ConvGeometry& g, int threads);

/// Pixels [0, pixels_read()) include all pixels that windows read.
I64 pixels_read(const WindowAxis& a);
/// Whether a window reads pixel `i`.
bool is_read(const WindowAxis& a, I64 i);

/// The grids of an image along one axis.
struct ConvGridAxis {
  I64 input = 1;                 ///< pixels of the image
  I64 read = 1;                  ///< pixels [0, read) contain all that windows reach
  I64 before = 0;                ///< padding in front of the image
  I64 stride = 1;                ///< number of residues
  I64 cells = 1;                 ///< of the grid of each residue
  std::vector<I64> unread = {};  ///< pixels below `read` that are left zero, in order

  /// Cells [0, leading_zeros()) are zero in the grid of each residue.
  I64 leading_zeros() const { return before / stride; }
  /// Sets `cells` for `positions` positions that read cells below `needed`. Where rows wrap, a cell
  /// past the last one is the first of the next row, which may be read where it is zero.
  void reach(I64 needed, I64 positions, bool wrapped) {
    cells = std::max({divide_up(input + before, stride),
                      positions,
                      needed - (wrapped ? leading_zeros() : 0),
                      I64{1}});
  }
};

/// A padded image, split by residue: [plane][residue][cell][channel].
struct ConvGrid {
  ConvGridAxis h, w;
  I64 channels = 1;
  I64 tail_cells = 0;  ///< past the image; tiles read them
  I64 planes = 1;      ///< 2 for float16

  /// Cells of an image, in one residue.
  I64 cells() const { return h.cells * w.cells; }
  /// Values of a residue.
  I64 values() const { return round_up((cells() + tail_cells) * channels, k_k_block); }
  I64 plane_bytes() const { return values() * h.stride * w.stride * k_value_bytes; }
  I64 bytes() const { return plane_bytes() * planes; }
  I64 image_bytes() const { return h.input * w.input * channels * k_value_bytes; }
  /// Whether GEMMs can read an image as its grid, the tail cells being part of the next image.
  bool readable_in_place() const { return equals_image() && bytes() <= 2 * image_bytes(); }
  /// Whether an image has the layout of its grid.
  bool equals_image() const {
    return planes == 1 && h.stride == 1 && w.stride == 1 && h.before == 0 && w.before == 0 &&
           h.cells == h.input && w.cells == w.input && h.read == h.input && w.read == w.input &&
           h.unread.empty() && w.unread.empty();
  }

  /// Neighbouring cells of a residue, and their pixels.
  struct Run {
    I64 residue, cell;
    I64 pixel;       ///< of the first cell; the next ones are w.stride pixels apart; -1: zeros
    I64 pixels = 1;  ///< number of cells
  };
  /// Visits all cells that hold pixels, then those of them that are left zero.
  void for_each_run(FunctionRef<void(const Run&)> visit) const;

  /// Writes the pixels of an image to the grid, which holds zeros elsewhere.
  void copy_image(const ConvMicroKernels& kernels, std::byte* grid, const std::byte* image) const;
};

}  // namespace halfstep::backend::cpu::packed

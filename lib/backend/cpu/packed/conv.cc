// Convolutions of x [N,H,W,C] with filters [h,w,C,O], and their gradients, as implicit GEMMs on a
// matrix unit. Stored dtypes: bfloat16 or float16; accumulated in float32, rounded once, after the
// bias of Conv2DBias was added.
//
// Forward: each image is copied into a grid, channels last, with zeros for its padding. In a grid
// the pixel under a tap is a fixed number of cells from the pixel under the first tap, so
// consecutive cells times the filter values of a tap are a GEMM that reads operand A from the grid
// in place; rows of C at cells that are not outputs are not stored. With strides there is a grid
// for each residue of the pixel coordinates, so that neighbouring outputs read neighbouring cells.
// If a row of taps has fewer than 32 values, the values of each position are gathered first. A
// float16 value is split into a high and a low bfloat16 value, stored in two planes.
//
// Gradient with respect to x: the same over the grid of dy with the taps in reverse order, for each
// residue of the pixels of x. Gradient with respect to the filter: a GEMM reduced over positions,
// with dy transposed and x in pairs of positions, of several images at a time if they are small;
// each thread accumulates over its images, and the accumulators are added in the order of the
// threads.
//
// Infinities and NaN: every result element that is non-finite by definition is non-finite, and a
// result tensor without such an element is finite, so that a finite check finds the right tensor.
// Cells without a pixel are multiplied as zeros, and zero times infinity is NaN: a non-finite value
// in a channel of the filter can make y and dx NaN at the border of the image, and one in a channel
// of x or dy can make dw NaN for more taps. Taps that never read a pixel and pixels that no window
// reads are skipped. An exception is a non-finite dy under a window entirely in the padding: dw is
// then NaN.

#include "backend/cpu/packed/conv.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "backend/cpu/packed/conv_grid.h"
#include "core/parallel.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu::packed {
namespace {

constexpr I64 k_gather_bytes = 24 << 10;  // stays in the first-level cache

/// A tap of the filter and the cell that it reads.
struct Tap {
  I64 grid_offset = 0;    ///< of the cell's values from those of the position, in values
  I64 filter_offset = 0;  ///< of the tap's values in the filter, in values
};

/// The GEMM of the outputs of one residue; see ConvGemmArgs, GatherArgs and PackFilterArgs.
struct ResidueGemm {
  std::vector<Tap> taps;
  I64 positions = 0;  ///< a multiple of 64
  std::vector<std::int32_t> result_pixel;
  std::vector<std::int32_t> base;  ///< only where values are gathered
  std::vector<std::int32_t> block_offsets;
  std::vector<std::int32_t> k_offset;
  std::vector<GatherSegment> segments;
  std::vector<std::int32_t> segment_ends;
  I64 k_blocks = 0;
  I64 packed_filter = 0;  ///< offset in the workspace
  bool gathered = false;

  /// Taps on neighbouring cells form a run of values. If each run has 32 or more, k blocks are read
  /// from the grid; the last one of a run overlaps the one before, with zeros in the filter, and
  /// does not reach past the run, where values need not be finite. Otherwise values are gathered.
  void choose_gather(I64 channels) {
    I64 run = 0;
    for (std::size_t t = 0; t < taps.size(); ++t) {
      run += channels;
      const bool last =
          t + 1 == taps.size() || taps[t + 1].grid_offset != taps[t].grid_offset + channels;
      if (last && run < k_k_block) gathered = true;
      if (last) run = 0;
    }
  }

  /// Sets the k blocks and their offsets; k_stride: from one channel to the next in the filter.
  void set_k_blocks(I64 channels, I64 k_stride) {
    const auto k_of = [&](const Tap& tap, I64 c) {
      return static_cast<std::int32_t>(tap.filter_offset + c * k_stride);
    };
    if (gathered) {
      I64 k = 0;
      for (const Tap& tap : taps) {
        for (I64 c = 0; c < channels; ++c, ++k) {
          if (k % k_k_block == 0) segment_ends.push_back(0);
          k_offset.push_back(k_of(tap, c));
          const auto lane0 = static_cast<std::int32_t>(tap.grid_offset + c - k % k_k_block);
          const std::uint32_t bit = 1U << (k % k_k_block);
          if (k % k_k_block != 0 && segments.back().offset == lane0) {
            segments.back().lanes |= bit;
          } else {
            segments.push_back({lane0, bit});
          }
          segment_ends.back() = static_cast<std::int32_t>(segments.size());
        }
      }
      k_blocks = static_cast<I64>(segment_ends.size());
      k_offset.resize(static_cast<std::size_t>(k_blocks * k_k_block), -1);
      for (I64 i = 0; i < k_blocks; ++i)
        block_offsets.push_back(static_cast<std::int32_t>(i * k_line_bytes));
      return;
    }
    std::vector<std::int32_t> run;  // offsets in the filter
    I64 first = 0;
    for (std::size_t t = 0; t < taps.size(); ++t) {
      if (run.empty()) first = taps[t].grid_offset;
      for (I64 c = 0; c < channels; ++c) run.push_back(k_of(taps[t], c));
      if (t + 1 < taps.size() && taps[t + 1].grid_offset == taps[t].grid_offset + channels)
        continue;
      const auto length = static_cast<I64>(run.size());
      for (I64 done = 0; done < length; done += k_k_block, ++k_blocks) {
        const I64 from = std::min(done, length - k_k_block);
        block_offsets.push_back(static_cast<std::int32_t>((first + from) * k_value_bytes));
        for (I64 k = from; k < from + k_k_block; ++k) {
          k_offset.push_back(k < done ? -1 : run[static_cast<std::size_t>(k)]);
        }
      }
      run.clear();
    }
  }
};

/// y (or dx) from the grid of x (or dy), image by image.
class ImplicitGemm {
 public:
  ConvGrid grid;
  std::vector<ResidueGemm> gemms;
  I64 batch = 1, outputs = 1, result_pixels = 1, n_stride = 1;
  I64 position_cells = 1;  ///< from one position to the next
  I64 partial_products = 1;
  std::size_t source_port = 0, filter_port = 1, bias_port = 0;
  const ConvMicroKernels* kernels = nullptr;

  Prepared prepare(const ConvMicroKernels& micro_kernels, I64 parts) {
    kernels = &micro_kernels;
    parts_ = parts;
    WorkspaceLayout layout;
    for (ResidueGemm& gemm : gemms) {
      // Forward, a channel of the filter is a row of all outputs.
      gemm.set_k_blocks(grid.channels, n_stride == 1 ? outputs : 1);
      gemm.packed_filter = layout.reserve(packed_filter_bytes(outputs, gemm.k_blocks, grid.planes));
      if (gemm.gathered) {
        gathered_bytes_ = std::max(
            gathered_bytes_, gathered_positions(gemm) * gemm.k_blocks * k_line_bytes * grid.planes);
      }
    }
    bias_offset_ = layout.reserve(round_up(outputs, k_k_block) * 4);
    thread_offset_ = layout.bytes();
    WorkspaceLayout thread;
    accumulators_offset_ = thread.reserve(2048 * 4);
    grid_offset_ = thread.reserve(grid.bytes());
    gathered_offset_ = thread.reserve(gathered_bytes_);
    thread_bytes_ = thread.bytes();
    const I64 bytes = thread_offset_ + parts_ * thread_bytes_;
    return launch([self = std::move(*this)](const Args& args) { self.run(args); },
                  static_cast<std::size_t>(bytes));
  }

 private:
  I64 parts_ = 1;  ///< of the batch, each computed by one thread
  I64 bias_offset_ = 0, thread_offset_ = 0, thread_bytes_ = 0;
  I64 accumulators_offset_ = 0, grid_offset_ = 0, gathered_offset_ = 0, gathered_bytes_ = 0;

  /// Positions that are gathered per call.
  static I64 gathered_positions(const ResidueGemm& gemm) {
    return std::max<I64>(k_gather_bytes / (gemm.k_blocks * k_line_bytes + 1) / 64 * 64, 64);
  }

  void run(const Args& args) const {
    std::byte* workspace = args.workspace;
    const auto* filter = args.in[filter_port].as<const std::uint16_t>();
    const I64 grain = std::max<I64>(1, (1 << 13) / (outputs * k_k_block));
    for (const ResidueGemm& gemm : gemms) {
      parallel_for_each(gemm.k_blocks, grain, [&](I64 block) {
        kernels->pack_filter[grid.planes - 1]({.to = workspace + gemm.packed_filter,
                                               .filter = filter,
                                               .k_offset = gemm.k_offset.data(),
                                               .k_blocks = gemm.k_blocks,
                                               .n_stride = n_stride,
                                               .outputs = outputs},
                                              block);
      });
    }
    const float* bias = nullptr;
    if (bias_port != 0) {
      auto* padded = reinterpret_cast<float*>(workspace + bias_offset_);
      std::fill_n(padded, round_up(outputs, k_k_block), 0.0F);
      convert(args.in[bias_port], {DType::float32, {outputs}, padded});
      bias = padded;
    }
    const auto* source = args.in[source_port].as<const std::byte>();
    auto* result = args.out[0].as<std::byte>();
    // GEMMs that read the image in place read beyond its end, which the last image does not allow.
    const I64 in_place = grid.readable_in_place() ? batch - 1 : 0;
    parallel_for(parts_, 1, [&](I64 begin, I64 end) {
      kernels->configure();
      for (I64 part = begin; part < end; ++part) {
        std::byte* thread_memory = workspace + thread_offset_ + part * thread_bytes_;
        const I64 last = batch * (part + 1) / parts_;
        if (last > in_place) {
          std::memset(thread_memory + grid_offset_, 0, static_cast<std::size_t>(grid.bytes()));
        }
        for (I64 n = batch * part / parts_; n < last; ++n) {
          const std::byte* from = source + n * grid.image_bytes();
          if (n >= in_place) {
            grid.copy_image(*kernels, thread_memory + grid_offset_, from);
            from = thread_memory + grid_offset_;
          }
          std::byte* y = result + n * result_pixels * outputs * k_value_bytes;
          PrefetchRange next{source + (n + 1) * grid.image_bytes(),
                             n + 1 < last ? grid.image_bytes() : 0};
          for (const ResidueGemm& gemm : gemms) {
            multiply_image(gemm, from, workspace, thread_memory, bias, y, std::exchange(next, {}));
          }
        }
      }
      kernels->release();
    });
  }

  void multiply_image(const ResidueGemm& gemm,
                      const std::byte* cells,
                      const std::byte* workspace,
                      std::byte* thread_memory,
                      const float* bias,
                      std::byte* y,
                      PrefetchRange next) const {
    const auto multiply = kernels->gemm[partial_products == 1 ? 0 : partial_products - 2];
    ConvGemmArgs c{.a = cells,
                   .low_plane = grid.plane_bytes(),
                   .position_bytes = position_cells * grid.channels * k_value_bytes,
                   .block_offsets = gemm.block_offsets.data(),
                   .k_blocks = gemm.k_blocks,
                   .filter = workspace + gemm.packed_filter,
                   .positions = gemm.positions,
                   .result_pixel = gemm.result_pixel.data(),
                   .y = y,
                   .outputs = outputs,
                   .bias = bias,
                   .accumulators = reinterpret_cast<float*>(thread_memory + accumulators_offset_),
                   .next = next};
    if (!gemm.gathered) {
      multiply(c);
      return;
    }
    const I64 run = gathered_positions(gemm);
    c.a = thread_memory + gathered_offset_;
    c.low_plane = run * gemm.k_blocks * k_line_bytes;
    c.position_bytes = gemm.k_blocks * k_line_bytes;
    for (I64 p = 0; p < gemm.positions; p += run) {
      c.positions = std::min(run, gemm.positions - p);
      c.result_pixel = gemm.result_pixel.data() + p;
      for (I64 plane = 0; plane < grid.planes; ++plane) {
        kernels->gather({.to = thread_memory + gathered_offset_ + plane * c.low_plane,
                         .from = cells + plane * grid.plane_bytes(),
                         .base = gemm.base.data() + p,
                         .positions = c.positions,
                         .segments = gemm.segments.data(),
                         .segment_ends = gemm.segment_ends.data(),
                         .k_blocks = gemm.k_blocks});
      }
      multiply(c);
      c.next = {};
    }
  }
};

/// Coordinates [first, first + count) along an axis; coordinate o is pixel scale * o + shift of the
/// result.
struct ResultAxis {
  I64 first = 0, count = 0, scale = 1, shift = 0;
};

/// Sets the positions of a GEMM, `position_cells` cells from each other along a row of the grid,
/// and their pixels in a result of `width` columns.
void set_positions(ResidueGemm& gemm,
                   const ConvGrid& grid,
                   const ResultAxis& h,
                   const ResultAxis& w,
                   I64 width,
                   I64 position_cells) {
  if (h.count <= 0 || w.count <= 0) return;
  const auto pixel = [&](I64 i, I64 j) {
    return static_cast<std::int32_t>(((h.first + i) * h.scale + h.shift) * width +
                                     (w.first + j) * w.scale + w.shift);
  };
  if (gemm.gathered) {
    for (I64 i = 0; i < h.count; ++i) {
      for (I64 j = 0; j < w.count; ++j) {
        gemm.result_pixel.push_back(pixel(i, j));
        gemm.base.push_back(
            static_cast<std::int32_t>((i * grid.w.cells + j * position_cells) * grid.channels));
      }
    }
  } else {
    const I64 row = grid.w.cells / position_cells;
    const I64 last = (h.count - 1) * row + w.count;
    for (I64 p = 0; p < last; ++p) {
      gemm.result_pixel.push_back(p % row < w.count ? pixel(p / row, p % row) : -1);
    }
  }
  gemm.positions = round_up(static_cast<I64>(gemm.result_pixel.size()), 64);
  gemm.result_pixel.resize(static_cast<std::size_t>(gemm.positions), -1);
  gemm.base.resize(gemm.result_pixel.size(), 0);
}

ImplicitGemm forward(const NodeView& node) {
  const ConvGeometry g = conv_geometry_of(node);
  const WindowAxis &h = g.window.height, &w = g.window.width;
  ImplicitGemm o;
  o.partial_products = partial_products_of(node);
  o.batch = g.batch;
  o.outputs = g.outputs;
  o.result_pixels = h.output * w.output;
  o.position_cells = w.stride;
  if (node.node.is(graph::ops::k_conv2d_bias)) o.bias_port = 2;
  ConvGrid& grid = o.grid;
  grid.planes = o.partial_products == 1 ? 1 : 2;
  grid.channels = g.inputs;
  // Along the height there is a grid for each residue; along the width positions are a stride of
  // cells apart, and a row of the grid is a multiple of that.
  grid.h = {.input = h.input, .read = pixels_read(h), .before = h.pad_before, .stride = h.stride};
  grid.h.reach(h.output + (h.size - 1) * h.dilation / h.stride, h.output, false);
  grid.w = {.input = w.input, .read = pixels_read(w), .before = w.pad_before};
  grid.w.reach((w.output - 1) * w.stride + w.extent(), w.output * w.stride, true);
  grid.w.cells = round_up(grid.w.cells, w.stride);
  ResidueGemm gemm;
  std::vector<I64> residues;
  for (I64 i = 0; i < h.size; ++i) {
    for (I64 j = 0; j < w.size; ++j) {
      if (!reads_input(h, i) || !reads_input(w, j)) continue;
      const I64 row = i * h.dilation;
      const I64 cell = row / h.stride * grid.w.cells + j * w.dilation;
      gemm.taps.push_back({cell * g.inputs, (i * w.size + j) * g.inputs * g.outputs});
      residues.push_back(row % h.stride);
    }
  }
  gemm.choose_gather(g.inputs);
  set_positions(gemm, grid, {0, h.output, 1, 0}, {0, w.output, 1, 0}, w.output, w.stride);
  I64 farthest = 0;
  for (const Tap& tap : gemm.taps) farthest = std::max(farthest, tap.grid_offset / g.inputs);
  grid.tail_cells =
      std::max<I64>(farthest + (gemm.positions + k_k_block) * w.stride - grid.cells(), 0) +
      k_k_block;
  for (std::size_t t = 0; t < residues.size(); ++t) {
    gemm.taps[t].grid_offset += residues[t] * grid.values();
  }
  o.gemms.push_back(std::move(gemm));
  return o;
}

ImplicitGemm backward_data(const NodeView& node) {
  const ConvGeometry g = conv_geometry_of(node);
  const WindowAxis &h = g.window.height, &w = g.window.width;
  ImplicitGemm o;
  o.partial_products = partial_products_of(node);
  o.batch = g.batch;
  o.outputs = g.inputs;
  o.result_pixels = h.input * w.input;
  o.n_stride = g.outputs;
  o.source_port = 2;
  ConvGrid& grid = o.grid;
  grid.planes = o.partial_products == 1 ? 1 : 2;
  grid.channels = g.outputs;
  // Pixel stride * q + a - pad of x is read by each tap with tap * dilation = a modulo stride, for
  // output q - (tap * dilation - a) / stride.
  const auto reach = [](const WindowAxis& a) { return (a.size - 1) * a.dilation / a.stride; };
  const auto outputs = [](const WindowAxis& a, I64 residue) {
    const I64 first = divide_up(std::max<I64>(a.pad_before - residue, 0), a.stride);
    const I64 past = a.input - 1 + a.pad_before - residue;
    const I64 count = past < 0 ? 0 : past / a.stride - first + 1;
    return ResultAxis{first, count, a.stride, residue - a.pad_before};
  };
  const auto axis = [&](const WindowAxis& a, bool wrapped) {
    ConvGridAxis x{.input = a.output, .read = a.output, .before = reach(a)};
    const I64 positions = (a.input - 1 + a.pad_before) / a.stride + 1;
    x.reach(positions + reach(a), positions, wrapped);
    return x;
  };
  grid.h = axis(h, false);
  grid.w = axis(w, true);
  I64 farthest = 0;
  for (I64 a = 0; a < h.stride; ++a) {
    for (I64 b = 0; b < w.stride; ++b) {
      ResidueGemm gemm;
      const ResultAxis rows = outputs(h, a), columns = outputs(w, b);
      for (I64 i = h.size - 1; i >= 0; --i) {
        for (I64 j = w.size - 1; j >= 0; --j) {
          if (i * h.dilation % h.stride != a || j * w.dilation % w.stride != b) continue;
          if (!reads_input(h, i) || !reads_input(w, j)) continue;
          const I64 row = rows.first + reach(h) - i * h.dilation / h.stride;
          const I64 column = columns.first + reach(w) - j * w.dilation / w.stride;
          gemm.taps.push_back(
              {(row * grid.w.cells + column) * g.outputs, (i * w.size + j) * g.inputs * g.outputs});
        }
      }
      gemm.choose_gather(g.outputs);
      set_positions(gemm, grid, rows, columns, w.input, 1);
      if (gemm.positions == 0) continue;
      for (const Tap& tap : gemm.taps) {
        farthest = std::max(farthest, tap.grid_offset / g.outputs + gemm.positions);
      }
      o.gemms.push_back(std::move(gemm));
    }
  }
  grid.tail_cells = std::max<I64>(farthest - grid.cells(), 0) + 2 * k_k_block;
  return o;
}

}  // namespace

Prepared prepare_conv_forward(const NodeView& node, const ConvMicroKernels& kernels, int threads) {
  return forward(node).prepare(kernels, parts_of_batch(conv_geometry_of(node), threads));
}

Prepared prepare_conv_backward_data(const NodeView& node,
                                    const ConvMicroKernels& kernels,
                                    int threads) {
  return backward_data(node).prepare(kernels, parts_of_batch(conv_geometry_of(node), threads));
}

}  // namespace halfstep::backend::cpu::packed

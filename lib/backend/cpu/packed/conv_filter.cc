// The gradient of a convolution with respect to the filter; see conv.cc.

#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/cpu/packed/conv.h"
#include "backend/cpu/packed/conv_grid.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::packed {
namespace {

/// dw^T [O, taps * C] = dy^T x, reduced over the positions of all images. dy is transposed to
/// [O][position]. Of x each pair of neighbouring cells is interleaved: a tile of pairs begins at an
/// even or at an odd cell, by the tap, so that it consists of whole cache lines in one of two
/// copies of x.
class FilterGradient {
 public:
  explicit FilterGradient(const NodeView& node, const ConvMicroKernels& kernels, int threads);

  I64 workspace_bytes() const { return thread_offset_ + parts_ * thread_bytes_; }
  void run(const Args& args) const;

 private:
  /// Copies of the pairs of a residue of x, by whether they begin at even cells or at odd ones.
  struct Pairs {
    I64 offset[2] = {-1, -1};  ///< in bytes; -1: no tap reads them
  };
  /// A tile column of the GEMM: up to 16 channels under a tap.
  struct Column {
    I64 tap, channel;
  };

  void accumulate_images(
      std::byte* thread_memory, const std::byte* x, const std::byte* dy, I64 begin, I64 end) const;
  void pair_image(std::byte* pairs, const std::byte* image, I64 first_cell) const;
  void store(const std::byte* workspace, const TensorView& w) const;

  const ConvMicroKernels* kernels_;
  I64 partial_products_, batch_, inputs_, outputs_;
  ConvGrid x_;                ///< where the pixels of x are
  I64 images_ = 1;            ///< of one GEMM
  I64 dy_pixels_ = 0;         ///< of an image
  std::vector<Pairs> pairs_;  ///< of each residue
  std::vector<Column> columns_;
  std::vector<I64> column_offsets_;     ///< of the first tile of pairs of each column, in bytes
  std::vector<std::int32_t> dy_pixel_;  ///< of each position
  std::vector<bool> tap_reads_;         ///< false: the tap is in the padding for every output
  I64 k_blocks_ = 0, block_bytes_ = 0;  ///< bytes of the pairs of 16 channels
  I64 pairs_plane_ = 0, transposed_plane_ = 0;
  I64 parts_ = 1;
  I64 thread_offset_ = 0, thread_bytes_ = 0, accumulators_offset_ = 0, pairs_offset_ = 0,
      transposed_offset_ = 0;
};

FilterGradient::FilterGradient(const NodeView& node, const ConvMicroKernels& kernels, int threads)
    : kernels_(&kernels) {
  const ConvGeometry g = conv_geometry_of(node);
  const WindowAxis &h = g.window.height, &w = g.window.width;
  partial_products_ = partial_products_of(node);
  batch_ = g.batch;
  inputs_ = g.inputs;
  outputs_ = g.outputs;
  parts_ = parts_of_batch(g, threads);
  x_.planes = partial_products_ == 1 ? 1 : 2;
  x_.channels = inputs_;
  const auto axis = [](const WindowAxis& a) {
    ConvGridAxis x{
        .input = a.input, .read = pixels_read(a), .before = a.pad_before, .stride = a.stride};
    // dy is zero at cells that are no position; zero times infinity would be NaN.
    for (I64 i = 0; i < x.read; ++i) {
      if (!is_read(a, i)) x.unread.push_back(i);
    }
    // The rows after an image are the first rows of the next one, which are zero.
    x.reach(a.output + (a.size - 1) * a.dilation / a.stride, a.output, true);
    return x;
  };
  x_.h = axis(h);
  x_.w = axis(w);
  constexpr I64 k_positions = 768;  // of small images, in one GEMM
  images_ = std::clamp<I64>(k_positions / x_.cells(), 1, divide_up(batch_, parts_));
  dy_pixels_ = h.output * w.output;
  for (I64 image = 0; image < images_; ++image) {
    dy_pixel_.resize(static_cast<std::size_t>(image * x_.cells()), -1);
    for (I64 i = 0; i < h.output; ++i) {
      dy_pixel_.resize(static_cast<std::size_t>(image * x_.cells() + i * x_.w.cells), -1);
      for (I64 j = 0; j < w.output; ++j) {
        dy_pixel_.push_back(static_cast<std::int32_t>(image * dy_pixels_ + i * w.output + j));
      }
    }
  }
  k_blocks_ = divide_up(static_cast<I64>(dy_pixel_.size()), k_k_block);
  dy_pixel_.resize(static_cast<std::size_t>(k_blocks_ * k_k_block), -1);

  const auto cell_of = [&](I64 i, I64 j) {
    return i * h.dilation / h.stride * x_.w.cells + j * w.dilation / w.stride;
  };
  const I64 blocks = divide_up(inputs_, 16);
  // Tiles reach past the last image, where pairs are zero.
  const I64 cells =
      std::max(k_blocks_ * k_k_block + cell_of(h.size - 1, w.size - 1), images_ * x_.cells());
  block_bytes_ = (cells / 2 + 1) * k_line_bytes;
  pairs_.resize(static_cast<std::size_t>(h.stride * w.stride));
  for (I64 tap = 0; tap < h.size * w.size; ++tap) {
    tap_reads_.push_back(reads_input(h, tap / w.size) && reads_input(w, tap % w.size));
  }
  // Neighbouring columns are taps of the same channels, whose pairs then stay in the cache.
  for (I64 b = 0; b < blocks; ++b) {
    for (I64 tap = 0; tap < h.size * w.size; ++tap) {
      const I64 i = tap / w.size, j = tap % w.size;
      const I64 residue = i * h.dilation % h.stride * w.stride + j * w.dilation % w.stride;
      const I64 cell = cell_of(i, j);
      I64& pairs = pairs_[static_cast<std::size_t>(residue)].offset[cell % 2];
      if (pairs < 0) {
        pairs = pairs_plane_;
        pairs_plane_ += blocks * block_bytes_;
      }
      columns_.push_back({tap, b * 16});
      column_offsets_.push_back(pairs + b * block_bytes_ + cell / 2 * k_line_bytes);
    }
  }
  transposed_plane_ = divide_up(outputs_, 16) * k_blocks_ * 1024;
  WorkspaceLayout thread;
  accumulators_offset_ =
      thread.reserve(static_cast<I64>(columns_.size()) * divide_up(outputs_, 16) * 1024);
  pairs_offset_ = thread.reserve(pairs_plane_ * x_.planes);
  transposed_offset_ = thread.reserve(transposed_plane_ * x_.planes);
  thread_bytes_ = thread.bytes();
}

void FilterGradient::run(const Args& args) const {
  std::byte* workspace = args.workspace;
  const auto* x = args.in[0].as<const std::byte>();
  const auto* dy = args.in[2].as<const std::byte>();
  parallel_for(parts_, 1, [&](I64 begin, I64 end) {
    kernels_->configure();
    for (I64 part = begin; part < end; ++part) {
      accumulate_images(workspace + thread_offset_ + part * thread_bytes_,
                        x,
                        dy,
                        batch_ * part / parts_,
                        batch_ * (part + 1) / parts_);
    }
    kernels_->release();
  });
  store(workspace, args.out[0]);
}

void FilterGradient::accumulate_images(
    std::byte* thread_memory, const std::byte* x, const std::byte* dy, I64 begin, I64 end) const {
  std::byte* pairs = thread_memory + pairs_offset_;
  std::byte* transposed = thread_memory + transposed_offset_;
  std::memset(pairs, 0, static_cast<std::size_t>(pairs_plane_ * x_.planes));
  const I64 dy_image = dy_pixels_ * outputs_ * k_value_bytes;
  for (I64 n = begin; n < end; n += images_) {
    const I64 images = std::min(images_, end - n);
    // Pairs of missing images hold values of the previous GEMM, which dy = 0 multiplies.
    for (I64 i = 0; i < images; ++i) {
      pair_image(pairs, x + (n + i) * x_.image_bytes(), i * x_.cells());
    }
    const I64 k_blocks = std::min(k_blocks_, divide_up(images * x_.cells(), k_k_block));
    kernels_->transpose_pixels[x_.planes - 1]({.to = transposed,
                                               .row_bytes = k_blocks_ * 1024,
                                               .low_plane = transposed_plane_,
                                               .from = dy + n * dy_image,
                                               .channels = outputs_,
                                               .pixel = dy_pixel_.data(),
                                               .pixels = images * dy_pixels_,
                                               .k_blocks = k_blocks});
    const I64 next = std::min(images_, end - n - images);
    kernels_->filter_gradient[partial_products_ == 1 ? 0 : partial_products_ - 2](
        {.a = transposed,
         .a_low_plane = transposed_plane_,
         .a_row_bytes = k_blocks_ * 1024,
         .tile_rows = divide_up(outputs_, 16),
         .b = pairs,
         .b_low_plane = pairs_plane_,
         .b_columns = column_offsets_.data(),
         .tile_columns = static_cast<I64>(columns_.size()),
         .k_blocks = k_blocks,
         .overwrite = n == begin,
         .accumulators = reinterpret_cast<float*>(thread_memory + accumulators_offset_),
         .next = {{x + (n + images) * x_.image_bytes(), next * x_.image_bytes()},
                  {dy + (n + images) * dy_image, next * dy_image}}});
  }
}

void FilterGradient::pair_image(std::byte* pairs, const std::byte* image, I64 first_cell) const {
  const I64 pixel = inputs_ * k_value_bytes;
  x_.for_each_run([&](const ConvGrid::Run& run) {
    const Pairs& copies = pairs_[static_cast<std::size_t>(run.residue)];
    const auto copy = [&](int odd) {
      return copies.offset[odd] < 0 ? nullptr : pairs + copies.offset[odd];
    };
    kernels_->pair_pixels[x_.planes - 1]({.to = {copy(0), copy(1)},
                                          .low_plane = pairs_plane_,
                                          .column_bytes = block_bytes_,
                                          .cell = first_cell + run.cell,
                                          .from = image + std::max<I64>(run.pixel, 0) * pixel,
                                          .zeros = run.pixel < 0,
                                          .from_stride = x_.w.stride * pixel,
                                          .pixels = run.pixels,
                                          .channels = inputs_});
  });
}

void FilterGradient::store(const std::byte* workspace, const TensorView& w) const {
  const I64 rows = divide_up(outputs_, 16);
  const auto* accumulators =
      reinterpret_cast<const float*>(workspace + thread_offset_ + accumulators_offset_);
  auto* to = w.as<std::byte>();
  parallel_for_each(static_cast<I64>(columns_.size()), 4, [&](I64 j) {
    const Column& column = columns_[static_cast<std::size_t>(j)];
    const I64 first = column.tap * inputs_ + column.channel;
    const I64 count = std::min<I64>(16, inputs_ - column.channel);
    if (!tap_reads_[static_cast<std::size_t>(column.tap)]) {
      std::memset(to + first * outputs_ * k_value_bytes,
                  0,
                  static_cast<std::size_t>(count * outputs_ * k_value_bytes));
      return;
    }
    for (I64 i = 0; i < rows; ++i) {
      kernels_->store_gradient[x_.planes - 1](
          {.tile = accumulators + (j * rows + i) * 256,
           .part_stride = thread_bytes_ / static_cast<I64>(sizeof(float)),
           .parts = parts_,
           .to = to + (first * outputs_ + i * 16) * k_value_bytes,
           .row_bytes = outputs_ * k_value_bytes,
           .rows = count,
           .columns = std::min<I64>(16, outputs_ - i * 16)});
    }
  });
}

}  // namespace

Prepared prepare_conv_backward_filter(const NodeView& node,
                                      const ConvMicroKernels& kernels,
                                      int threads) {
  FilterGradient o(node, kernels, threads);
  const auto bytes = static_cast<std::size_t>(o.workspace_bytes());
  return launch([o = std::move(o)](const Args& args) { o.run(args); }, bytes);
}

}  // namespace halfstep::backend::cpu::packed

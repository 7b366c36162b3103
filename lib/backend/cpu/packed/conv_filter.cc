// The gradient towards the filter; see conv.cc.

#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/cpu/packed/conv.h"
#include "backend/cpu/packed/conv_grid.h"
#include "core/dispatch.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::packed {
namespace {

/// dw [taps * C, O] = x^T dy, reduced over the positions of all images.
class FilterGradient {
 public:
  explicit FilterGradient(const NodeView& node, const ConvMicroKernels& kernels, int threads);

  I64 workspace_bytes() const { return thread_offset_ + parts_ * thread_bytes_; }
  void run(const Args& args) const;

 private:
  /// The rows of a tile: row r is row first + r * stride of dw.
  struct TileRows {
    I64 first, stride, count;
  };

  void accumulate_images(
      std::byte* thread_memory, const std::byte* x, const std::byte* dy, I64 begin, I64 end) const;
  template <class T>
  void store(const std::byte* workspace, T* w) const;

  const ConvMicroKernels* kernels_;
  I64 partial_products_, batch_, inputs_, outputs_;
  ConvGrid x_;
  I64 dy_height_, dy_width_;
  std::vector<PositionTile> tiles_;
  std::vector<TileRows> rows_;
  std::vector<bool> tap_reads_;  ///< false: the tap is in the padding for every output
  bool transposed_;              ///< false with one channel, which is its own transpose
  I64 x_row_bytes_ = 0;          ///< from one channel to the next in the transposed x
  I64 transposed_plane_ = 0, pairs_plane_ = 0, k_blocks_ = 0;
  I64 parts_ = 1;
  I64 thread_offset_ = 0, thread_bytes_ = 0, accumulators_offset_ = 0, x_offset_ = 0,
      transposed_offset_ = 0, pairs_offset_ = 0;
};

FilterGradient::FilterGradient(const NodeView& node, const ConvMicroKernels& kernels, int threads)
    : kernels_(&kernels) {
  const ConvGeometry g = conv_geometry_of(node, ConvResult::w);
  const WindowAxis &h = g.window.height, &w = g.window.width;
  partial_products_ = partial_products_of(node);
  batch_ = g.batch;
  inputs_ = g.inputs;
  outputs_ = g.outputs;
  transposed_ = inputs_ > 1;
  parts_ = std::clamp<I64>(
      static_cast<I64>(conv_flops(g) / (1 << 20)), 1, std::min<I64>(threads, batch_));
  x_.planes = partial_products_ == 1 ? 1 : 2;
  x_.channels = inputs_;
  dy_height_ = h.output;
  dy_width_ = w.output;
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
  // A row of dy begins with a whole pair of positions.
  x_.w.cells = round_up(x_.w.cells, 2);
  constexpr I64 k_positions = 768;  // of small images, in one GEMM
  const I64 images = std::clamp<I64>(k_positions / x_.cells(), 1, divide_up(batch_, parts_));
  x_.images = images;
  k_blocks_ =
      divide_up((images - 1) * x_.cells() + (h.output - 1) * x_.w.cells + w.output, k_k_block);
  const I64 positions = k_blocks_ * k_k_block;
  const I64 farthest =
      (h.size - 1) * h.dilation / h.stride * x_.w.cells + (w.size - 1) * w.dilation / w.stride;
  x_.tail_cells =
      std::max<I64>(round_up(positions + farthest, k_k_block) + 64 - images * x_.cells(), 0);

  // A row of the transposed x: one channel of one residue, all positions.
  const I64 row_positions = images * x_.cells() + x_.tail_cells;
  x_row_bytes_ =
      transposed_ ? round_up(row_positions * k_value_bytes, k_line_bytes) + k_line_bytes : 0;
  const I64 blocks = divide_up(inputs_, 16);
  transposed_plane_ =
      transposed_ ? x_row_bytes_ * 16 * blocks * h.stride * w.stride : x_.plane_bytes();
  pairs_plane_ = divide_up(outputs_, 16) * k_blocks_ * 1024;
  for (I64 tap = 0; tap < h.size * w.size; ++tap) {
    tap_reads_.push_back(reads_input(h, tap / w.size) && reads_input(w, tap % w.size));
  }
  // Neighbouring tiles are taps of the same two blocks of channels, which then stay in the cache.
  for (I64 pair = 0; pair < blocks; pair += 2) {
    for (I64 tap = 0; tap < h.size * w.size; ++tap) {
      const I64 i = tap / w.size, j = tap % w.size;
      const I64 row = i * h.dilation, column = j * w.dilation;
      const I64 residue = row % h.stride * w.stride + column % w.stride;
      const I64 cell = row / h.stride * x_.w.cells + column / w.stride;
      if (transposed_) {
        for (I64 b = pair; b < std::min(pair + 2, blocks); ++b) {
          tiles_.push_back(
              {(residue * blocks + b) * 16 * x_row_bytes_ + cell * k_value_bytes, x_row_bytes_});
          rows_.push_back({tap * inputs_ + b * 16, 1, std::min<I64>(16, inputs_ - b * 16)});
        }
      } else if (w.dilation == 1) {
        // Taps of a row with the same residue read neighbouring cells: row r of a tile is tap
        // j + r * stride.
        if (j >= w.stride && j / w.stride % 16 != 0) continue;
        tiles_.push_back({(residue * x_.values() + cell) * k_value_bytes, k_value_bytes});
        rows_.push_back({tap, w.stride, std::min<I64>(16, divide_up(w.size - j, w.stride))});
      } else {
        tiles_.push_back({(residue * x_.values() + cell) * k_value_bytes, k_value_bytes});
        rows_.push_back({tap, 1, 1});
      }
    }
  }
  WorkspaceLayout thread;
  accumulators_offset_ =
      thread.reserve(static_cast<I64>(tiles_.size()) * divide_up(outputs_, 16) * 1024);
  x_offset_ = thread.reserve(x_.bytes());
  transposed_offset_ = thread.reserve(transposed_ ? transposed_plane_ * x_.planes : 0);
  pairs_offset_ = thread.reserve(pairs_plane_ * x_.planes);
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
  if (args.out[0].dtype == DType::bfloat16) {
    store(workspace, args.out[0].as<bfloat16>());
  } else {
    store(workspace, args.out[0].as<float16>());
  }
}

void FilterGradient::accumulate_images(
    std::byte* thread_memory, const std::byte* x, const std::byte* dy, I64 begin, I64 end) const {
  const I64 blocks = divide_up(inputs_, 16);
  const I64 columns = divide_up(outputs_, 16);
  const I64 residues = x_.h.stride * x_.w.stride;
  const I64 dy_row = dy_width_ * outputs_ * k_value_bytes;
  const bool in_place = transposed_ && x_.equals_image();
  if (!in_place) std::memset(thread_memory + x_offset_, 0, static_cast<std::size_t>(x_.bytes()));
  std::memset(thread_memory + pairs_offset_, 0, static_cast<std::size_t>(pairs_plane_ * x_.planes));
  for (I64 n = begin; n < end; n += x_.images) {
    const I64 images = std::min(x_.images, end - n);
    const I64 block_count = std::min(k_blocks_, divide_up(images * x_.cells(), k_k_block));
    if (images < x_.images && n != begin) {
      // Clears the images of the GEMM before.
      std::memset(
          thread_memory + pairs_offset_, 0, static_cast<std::size_t>(pairs_plane_ * x_.planes));
    }
    for (I64 i = 0; i < images; ++i) {
      if (!in_place)
        x_.copy_image(*kernels_, thread_memory + x_offset_, x + (n + i) * x_.image_bytes(), i);
      for (I64 row = 0; row < dy_height_; ++row) {
        kernels_->pair_pixels[x_.planes - 1](
            {.to = thread_memory + pairs_offset_ + (i * x_.cells() + row * x_.w.cells) * 32,
             .low_plane = pairs_plane_,
             .column_bytes = k_blocks_ * 1024,
             .from = dy + ((n + i) * dy_height_ + row) * dy_row,
             .pixels = dy_width_,
             .channels = outputs_});
      }
    }
    const I64 cells = images * x_.cells() + (in_place ? 0 : x_.tail_cells);
    for (I64 plane = 0; transposed_ && plane < x_.planes * residues; ++plane) {
      const I64 p = plane / residues, residue = plane % residues;
      const std::byte* from = in_place ? x + n * x_.image_bytes()
                                       : thread_memory + x_offset_ + p * x_.plane_bytes() +
                                             residue * x_.values() * k_value_bytes;
      for (I64 b = 0; b < blocks; ++b) {
        std::byte* to = thread_memory + transposed_offset_ + p * transposed_plane_ +
                        (residue * blocks + b) * 16 * x_row_bytes_;
        for (I64 cell = 0; cell < x_.images * x_.cells() + x_.tail_cells; cell += k_k_block) {
          kernels_->transpose(to + cell * k_value_bytes,
                              x_row_bytes_,
                              from + (cell * inputs_ + b * 16) * k_value_bytes,
                              inputs_ * k_value_bytes,
                              cells - cell,
                              inputs_ - b * 16);
        }
      }
    }
    kernels_->filter_gradient[partial_products_ == 1 ? 0 : partial_products_ - 2](
        {.a = thread_memory + (transposed_ ? transposed_offset_ : x_offset_),
         .a_low_plane = transposed_plane_,
         .tiles = tiles_.data(),
         .tile_rows = static_cast<I64>(tiles_.size()),
         .b = thread_memory + pairs_offset_,
         .b_low_plane = pairs_plane_,
         .b_column_bytes = k_blocks_ * 1024,
         .tile_columns = columns,
         .k_blocks = block_count,
         .overwrite = n == begin,
         .accumulators = reinterpret_cast<float*>(thread_memory + accumulators_offset_)});
  }
}

template <class T>
void FilterGradient::store(const std::byte* workspace, T* w) const {
  const I64 columns = divide_up(outputs_, 16);
  parallel_for(static_cast<I64>(tiles_.size()), 16, [&](I64 begin, I64 end) {
    for (I64 t = begin; t < end; ++t) {
      const TileRows& rows = rows_[static_cast<std::size_t>(t)];
      for (I64 r = 0; r < rows.count; ++r) {
        const I64 row = rows.first + r * rows.stride;
        T* to = w + row * outputs_;
        if (!tap_reads_[static_cast<std::size_t>(row / inputs_)]) {
          std::fill_n(to, outputs_, static_cast<T>(0.0F));
          continue;
        }
        for (I64 j = 0; j < columns; ++j) {
          float sum[16];
          for (I64 part = 0; part < parts_; ++part) {
            const auto* from =
                reinterpret_cast<const float*>(workspace + thread_offset_ + part * thread_bytes_ +
                                               accumulators_offset_) +
                (t * columns + j) * 256 + r * 16;
            for (int i = 0; i < 16; ++i) sum[i] = part == 0 ? from[i] : sum[i] + from[i];
          }
          const I64 n = std::min<I64>(16, outputs_ - j * 16);
          for (I64 i = 0; i < n; ++i) to[j * 16 + i] = static_cast<T>(sum[i]);
        }
      }
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

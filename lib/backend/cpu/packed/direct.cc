// Convolutions with few terms, and their filter gradients: first layers with one to three input
// channels. A matrix unit would spend more time on packing than on multiplying; here an image is
// widened to float32 with a border of zeros, and a register accumulates 16 outputs. Infinities and
// NaN: as in conv.cc.

#include <algorithm>
#include <vector>

#include "backend/cpu/packed/conv.h"
#include "backend/cpu/packed/conv_grid.h"
#include "core/dispatch.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::packed {
namespace {

constexpr I64 k_lanes = 16;
constexpr I64 k_max_terms = 32;

/// Both directions: x as padded images in float32.
class DirectConv {
 public:
  DirectConv(const NodeView& node,
             const DirectMicroKernels& kernels,
             const Capabilities& capabilities)
      : kernels_(&kernels),
        g_(conv_geometry_of(node)),
        dtype_index_(node.output().dtype == DType::float16),
        flush_subnormals_(dtype_index_ == 0 && capabilities.isa >= Isa::avx512_bf16) {
    const WindowAxis &h = g_.window.height, &w = g_.window.width;
    rows_ = std::max(h.pad_before + h.input, (h.output - 1) * h.stride + h.extent());
    columns_ = std::max(w.pad_before + w.input, (w.output - 1) * w.stride + w.extent());
    for (I64 i = 0; i < h.size; ++i) {
      for (I64 j = 0; j < w.size; ++j) {
        const bool reads = reads_input(h, i) && reads_input(w, j);
        for (I64 c = 0; c < g_.inputs; ++c) {
          term_reads_input_.push_back(reads);
          offsets_.push_back(static_cast<std::int32_t>(
              (i * h.dilation * columns_ + j * w.dilation) * g_.inputs + c));
        }
      }
    }
    parts_ = parts_of_batch(g_, capabilities.threads);
  }

 protected:
  I64 terms() const { return static_cast<I64>(offsets_.size()); }
  I64 blocks() const { return divide_up(g_.outputs, k_lanes); }
  /// Floats of a padded image, of the filter, and of a row of dy.
  I64 grid_floats() const { return (rows_ * columns_ * g_.inputs + k_lanes) / k_lanes * k_lanes; }
  I64 filter_floats() const { return blocks() * terms() * k_lanes; }
  I64 row_floats() const { return blocks() * g_.window.width.output * k_lanes; }
  /// Rows of dy that fit the first-level cache (16 KiB).
  I64 rows_per_call() const { return std::clamp<I64>((4 << 10) / row_floats(), 1, 64); }

  void widen(float* grid, const std::uint16_t* image) const {
    const WindowAxis &h = g_.window.height, &w = g_.window.width;
    for (I64 i = 0; i < h.input; ++i) {
      kernels_->widen[dtype_index_](
          grid + ((i + h.pad_before) * columns_ + w.pad_before) * g_.inputs,
          image + i * w.input * g_.inputs,
          w.input * g_.inputs);
    }
  }
  I64 image_values() const { return g_.window.height.input * g_.window.width.input * g_.inputs; }
  const float* window_row(const float* grid, I64 i) const {
    return grid + i * g_.window.height.stride * columns_ * g_.inputs;
  }
  I64 pixel_stride() const { return g_.window.width.stride * g_.inputs; }

  const DirectMicroKernels* kernels_;
  ConvGeometry g_;
  std::size_t dtype_index_;
  bool flush_subnormals_;
  I64 rows_, columns_, parts_;
  std::vector<std::int32_t> offsets_;
  std::vector<bool> term_reads_input_;  ///< false: in the padding for every output
};

class DirectForward : public DirectConv {
 public:
  using DirectConv::DirectConv;

  I64 workspace_floats() const {
    return filter_floats() + blocks() * k_lanes + parts_ * grid_floats();
  }

  void run(const Args& args) const {
    auto* filter = reinterpret_cast<float*>(args.workspace);
    float* bias = filter + filter_floats();
    float* grids = bias + blocks() * k_lanes;
    // [tap][output] to [block][tap][16].
    kernels_->widen_blocks[dtype_index_](
        filter, args.in[1].as<const std::uint16_t>(), terms(), g_.outputs);
    for (I64 t = 0; t < terms(); ++t) {
      if (term_reads_input_[static_cast<std::size_t>(t)]) continue;
      for (I64 b = 0; b < blocks(); ++b) {
        std::fill_n(filter + (b * terms() + t) * k_lanes, k_lanes, 0.0F);
      }
    }
    std::fill_n(bias, blocks() * k_lanes, 0.0F);
    if (args.in.size() > 2) convert(args.in[2], {DType::float32, {g_.outputs}, bias});
    const auto* x = args.in[0].as<const std::uint16_t>();
    auto* y = args.out[0].as<std::uint16_t>();
    const I64 height = g_.window.height.output, width = g_.window.width.output;
    parallel_for_each(parts_, 1, [&](I64 part) {
      float* grid = grids + part * grid_floats();
      std::fill_n(grid, grid_floats(), 0.0F);
      for (I64 n = g_.batch * part / parts_; n < g_.batch * (part + 1) / parts_; ++n) {
        widen(grid, x + n * image_values());
        for (I64 i = 0; i < height; ++i) {
          kernels_->row[flush_subnormals_ ? 2 : dtype_index_](
              {.x = window_row(grid, i),
               .pixel_stride = pixel_stride(),
               .offsets = offsets_.data(),
               .terms = terms(),
               .filter = filter,
               .bias = bias,
               .y = y + (n * height + i) * width * g_.outputs,
               .pixels = width,
               .outputs = g_.outputs});
        }
      }
    });
  }
};

class DirectFilter : public DirectConv {
 public:
  using DirectConv::DirectConv;

  I64 workspace_floats() const { return parts_ * thread_floats(); }

  void run(const Args& args) const {
    auto* workspace = reinterpret_cast<float*>(args.workspace);
    const auto* x = args.in[0].as<const std::uint16_t>();
    const auto* dy = args.in[2].as<const std::uint16_t>();
    const I64 height = g_.window.height.output, width = g_.window.width.output;
    parallel_for_each(parts_, 1, [&](I64 part) {
      float* accumulators = workspace + part * thread_floats();
      float* grid = accumulators + filter_floats();
      float* row = grid + grid_floats();
      std::fill_n(accumulators, filter_floats() + grid_floats(), 0.0F);
      for (I64 n = g_.batch * part / parts_; n < g_.batch * (part + 1) / parts_; ++n) {
        widen(grid, x + n * image_values());
        for (I64 i = 0; i < height; i += rows_per_call()) {
          const I64 rows = std::min(rows_per_call(), height - i);
          kernels_->widen_blocks[dtype_index_](
              row, dy + (n * height + i) * width * g_.outputs, rows * width, g_.outputs);
          kernels_->filter_gradient({.x = window_row(grid, i),
                                     .pixel_stride = pixel_stride(),
                                     .row_stride = g_.window.height.stride * columns_ * g_.inputs,
                                     .offsets = offsets_.data(),
                                     .terms = terms(),
                                     .dy = row,
                                     .rows = rows,
                                     .pixels = width,
                                     .blocks = blocks(),
                                     .accumulators = accumulators});
        }
      }
    });
    if (dtype_index_ != 0) {
      store(workspace, args.out[0].as<float16>());
    } else {
      store(workspace, args.out[0].as<bfloat16>());
    }
  }

 private:
  I64 thread_floats() const {
    return filter_floats() + grid_floats() + row_floats() * rows_per_call();
  }

  /// Adds the accumulators of the parts in order, and rounds.
  template <class T>
  void store(const float* workspace, T* w) const {
    for (I64 o = 0; o < g_.outputs; ++o) {
      for (I64 t = 0; t < terms(); ++t) {
        const float* from = workspace + (o / k_lanes * terms() + t) * k_lanes + o % k_lanes;
        float sum = from[0];
        for (I64 part = 1; part < parts_; ++part) sum += from[part * thread_floats()];
        w[t * g_.outputs + o] =
            static_cast<T>(term_reads_input_[static_cast<std::size_t>(t)] ? sum : 0.0F);
      }
    }
  }
};

template <class Conv>
Prepared prepare(const NodeView& node,
                 const DirectMicroKernels& kernels,
                 const Capabilities& capabilities) {
  Conv conv(node, kernels, capabilities);
  const auto bytes = static_cast<std::size_t>(conv.workspace_floats()) * sizeof(float);
  return launch([conv = std::move(conv)](const Args& args) { conv.run(args); }, bytes);
}

}  // namespace

Accepts accepts_direct(const NodeView& node) {
  if (!is_half(node.output().dtype)) return Accepts::no("not a 16-bit dtype");
  const ConvGeometry g = conv_geometry_of(node);
  if (g.groups > 1) return Accepts::no("groups");
  const I64 terms = g.window.height.size * g.window.width.size * g.inputs;
  if (terms == 0 || g.x_shape().elements() == 0 || g.y_shape().elements() == 0) {
    return Accepts::no("empty");
  }
  if (terms > k_max_terms) return Accepts::no("many terms");
  return Accepts::yes();
}

Prepared prepare_direct_forward(const NodeView& node,
                                const DirectMicroKernels& kernels,
                                const Capabilities& capabilities) {
  return prepare<DirectForward>(node, kernels, capabilities);
}

Prepared prepare_direct_filter(const NodeView& node,
                               const DirectMicroKernels& kernels,
                               const Capabilities& capabilities) {
  return prepare<DirectFilter>(node, kernels, capabilities);
}

}  // namespace halfstep::backend::cpu::packed

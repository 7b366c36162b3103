// Pooling of x [N,H,W,C] and its gradients, in float32, one rounding on store.
//   max: NaN if a cell is NaN; the gradient goes to the first maximum cell in row-major order
//   average: over the cells inside the image
// Stored dtypes: float32, float16, bfloat16. Bit-identical for every instruction set and number of
// threads.

#include <algorithm>
#include <iterator>
#include <span>

#include "backend/cpu/vector/convert.h"
#include "backend/cpu/vector/kernels.h"
#include "core/error.h"
#include "core/parallel.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cpu::vector {
namespace {

using graph::ops::WindowAxis;

enum class Kind { max, average };

/// Outputs [begin, end) along an axis.
struct OutputRange {
  std::int64_t begin, end;
  bool contains(std::int64_t o) const { return begin <= o && o < end; }
};

/// The outputs whose windows are entirely inside the image.
OutputRange interior_outputs(const WindowAxis& axis) {
  const std::int64_t begin = (axis.pad_before + axis.stride - 1) / axis.stride;
  const std::int64_t last = axis.input - axis.extent() + axis.pad_before;
  return {begin, last < 0 ? 0 : std::min(axis.output, last / axis.stride + 1)};
}

/// Whether each cell is in exactly one window.
bool is_tiled(const WindowAxis& axis) {
  return axis.extent() == axis.size && axis.stride == axis.size && axis.pad_before == 0 &&
         axis.output * axis.size == axis.input;
}

/// A pooling, split into parts that each have memory in the workspace.
struct Pool : TypedLoops {
  WindowAxis h, w;
  OutputRange interior;  ///< outputs of a row whose windows are inside the image
  bool tiled;
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t parts = 1;
  std::int16_t infinity = 0;  ///< the bits of infinity in the 16-bit dtype

  Pool(const NodeView& node, const Shape& x, const Capabilities& capabilities)
      : TypedLoops(capabilities.isa, node.output().dtype),
        h(graph::ops::pool_window(node.attrs(), x).height),
        w(graph::ops::pool_window(node.attrs(), x).width),
        interior(interior_outputs(w)),
        tiled(is_tiled(h) && is_tiled(w)),
        batch(x[0]),
        channels(x[3]) {
    if (is_half(dtype)) infinity = dtype == DType::float16 ? 0x7c00 : 0x7f80;
    constexpr std::int64_t k_grain = 16384;
    parts = std::clamp<std::int64_t>(x.elements() / k_grain, 1, capabilities.threads);
  }

  std::int64_t input_row() const { return w.input * channels; }
  std::int64_t output_row() const { return w.output * channels; }
  std::int64_t output_image() const { return h.output * output_row(); }
  /// The maximum number of cells of a window.
  std::int64_t window() const { return h.size * w.size; }

  /// Calls body(item, offsets, buffer) for items [0, count); `offsets` has one element per cell of
  /// a window, `buffer` has `scratch` floats.
  template <class F>
  void for_each(const Args& args, std::int64_t count, std::int64_t scratch, const F& body) const {
    parallel_for_each(parts, 1, [&](std::int64_t part) {
      std::byte* memory = args.workspace + static_cast<std::size_t>(part) * part_bytes(scratch);
      auto* offsets = reinterpret_cast<std::int64_t*>(memory);
      auto* floats = reinterpret_cast<float*>(offsets + window());
      for (std::int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
        body(i, offsets, floats);
      }
    });
  }
  std::size_t part_bytes(std::int64_t scratch) const {
    return (static_cast<std::size_t>(window()) * sizeof(std::int64_t) +
            static_cast<std::size_t>(scratch) * sizeof(float) + 63) /
           64 * 64;
  }
  std::size_t workspace_bytes(std::int64_t scratch) const {
    return static_cast<std::size_t>(parts) * part_bytes(scratch);
  }
};

/// The taps of output `o` that read cells inside the image; all of them for most windows.
struct Taps {
  std::int64_t first, last;

  Taps(const WindowAxis& axis, std::int64_t o) : first(0), last(axis.size) {
    if (axis.inside(axis.cell(o, 0)) && axis.inside(axis.cell(o, axis.size - 1))) return;
    first = axis.first_tap(o);
    last = axis.last_tap(o);
  }
};

/// The offsets of the cells of the window at output (i, j) in an image whose first row is `row`.
std::span<const std::int64_t> find_cells(
    const Pool& p, std::int64_t i, std::int64_t j, std::int64_t row, std::int64_t* offsets) {
  std::int64_t* end = offsets;
  const Taps down(p.h, i);
  const Taps across(p.w, j);
  for (std::int64_t k = down.first; k < down.last; ++k) {
    const std::int64_t start = (p.h.cell(i, k) - row) * p.w.input;
    for (std::int64_t l = across.first; l < across.last; ++l) {
      *end++ = (start + p.w.cell(j, l)) * p.channels;
    }
  }
  return {offsets, end};
}

/// Calls body(j, windows) for the windows of output row i from output j on: one at a time for
/// windows that reach into the padding, all at once for the others.
template <class F>
void for_windows(
    const Pool& p, std::int64_t i, std::int64_t row, std::int64_t* offsets, const F& body) {
  for (std::int64_t j = 0; j < p.w.output;) {
    const auto cells = find_cells(p, i, j, row, offsets);
    const std::int64_t count = p.interior.contains(j) ? p.interior.end - j : 1;
    body(j,
         PoolWindows{.cells = cells.data(),
                     .taps = std::ssize(cells),
                     .channels = p.channels,
                     .count = count,
                     .step = p.w.stride * p.channels});
    j += count;
  }
}

/// Computes one row of outputs.
template <Kind kind>
void pool_row(
    const Pool& p, const Args& args, std::int64_t at, std::int64_t* offsets, float* scratch) {
  const std::int64_t image = at / p.h.output;
  const std::int64_t i = at % p.h.output;
  const std::int64_t first = p.h.cell(i, p.h.first_tap(i));
  const std::int64_t rows = p.h.last_tap(i) - p.h.first_tap(i);
  if (kind == Kind::max && p.infinity != 0) {
    const auto* from =
        args.in[0].as<const std::uint16_t>() + (image * p.h.input + first) * p.input_row();
    auto* to = args.out[0].as<std::uint16_t>() + at * p.output_row();
    bool nan = false;
    for_windows(p, i, first, offsets, [&](std::int64_t j, const PoolWindows& windows) {
      nan = p.loops->max_windows16(to + j * p.channels, from, windows, p.infinity) || nan;
    });
    if (!nan) return;
  }
  const float* x = p.source.read(
      args.in[0].data, (image * p.h.input + first) * p.input_row(), rows * p.input_row(), scratch);
  float* y =
      p.sink.buffer(args.out[0].data, at * p.output_row(), scratch + p.h.size * p.input_row());
  const auto loop = kind == Kind::max ? p.loops->max_windows : p.loops->mean_windows;
  for_windows(p, i, first, offsets, [&](std::int64_t j, const PoolWindows& windows) {
    loop(y + j * p.channels, x, windows);
  });
  p.sink.store(args.out[0].data, at * p.output_row(), p.output_row(), y);
}

template <Kind kind>
Prepared prepare_pool(const NodeView& node, const Capabilities& capabilities) {
  const Pool p(node, node.input(0).shape, capabilities);
  const std::int64_t scratch = p.h.size * p.input_row() + p.output_row();
  return launch(
      [=](const Args& args) {
        p.for_each(
            args, p.batch * p.h.output, scratch, [&](std::int64_t row, auto* offsets, auto* r) {
              pool_row<kind>(p, args, row, offsets, r);
            });
      },
      p.workspace_bytes(scratch));
}

/// Rows [first, last) of the input whose gradient depends only on rows [begin, end) of the output.
struct Strip {
  std::int64_t first, last, begin, end;
};

/// Whether no cell is in two windows along this axis, so that each row of outputs has a separate
/// strip.
bool has_disjoint_windows(const WindowAxis& axis) {
  return axis.stride >= axis.dilation * (axis.size - 1) + 1;
}

Strip strip_of(const Pool& p, std::int64_t row) {
  if (!has_disjoint_windows(p.h)) return {0, p.h.input, 0, p.h.output};
  const auto start = [&](std::int64_t i) {
    return i == 0 ? 0 : i == p.h.output ? p.h.input : p.h.cell(i, p.h.first_tap(i));
  };
  return {start(row), start(row + 1), row, row + 1};
}

/// The number of strips of an image, and the maximum number of rows of a strip.
std::int64_t strips(const Pool& p) { return has_disjoint_windows(p.h) ? p.h.output : 1; }
std::int64_t strip_rows(const Pool& p) {
  std::int64_t max_rows = 0;
  for (std::int64_t i = 0; i < strips(p); ++i) {
    const Strip strip = strip_of(p, i);
    max_rows = std::max(max_rows, strip.last - strip.first);
  }
  return max_rows;
}

/// Computes the gradient of one strip of an image: dx from dy, and for max also from x.
template <Kind kind>
void pool_grad_strip(
    const Pool& p, const Args& args, std::int64_t item, std::int64_t* offsets, float* scratch) {
  const std::int64_t image = item / strips(p);
  const Strip strip = strip_of(p, item % strips(p));
  const std::int64_t at = (image * p.h.input + strip.first) * p.input_row();
  const std::int64_t cells = (strip.last - strip.first) * p.input_row();
  const std::int64_t outputs = (strip.end - strip.begin) * p.output_row();
  const bool disjoint = kind == Kind::max && p.tiled;
  if (disjoint && p.infinity != 0) {
    const auto* from = args.in[0].as<const std::uint16_t>() + at;
    const auto* dy16 =
        args.in[2].as<const std::uint16_t>() + (image * p.h.output + strip.begin) * p.output_row();
    auto* dx16 = args.out[0].as<std::uint16_t>() + at;
    bool nan = false;
    for_windows(p, strip.begin, strip.first, offsets, [&](auto j, const PoolWindows& windows) {
      const auto loop = p.loops->max_windows_grad16;
      nan = loop(dx16, dy16 + j * p.channels, from, windows, p.infinity) || nan;
    });
    if (!nan) return;
  }
  const auto* gradient = args.in[kind == Kind::max ? 2 : 1].data;
  float* dx = p.sink.buffer(args.out[0].data, at, scratch);
  scratch += cells;
  const float* dy = p.source.read(
      gradient, (image * p.h.output + strip.begin) * p.output_row(), outputs, scratch);
  scratch += outputs;
  const float* x = kind == Kind::max ? p.source.read(args.in[0].data, at, cells, scratch) : nullptr;
  if (!disjoint) std::fill_n(dx, cells, 0.0F);
  for (std::int64_t i = strip.begin; i < strip.end; ++i, dy += p.output_row()) {
    for_windows(p, i, strip.first, offsets, [&](std::int64_t j, const PoolWindows& windows) {
      if constexpr (kind == Kind::max) {
        p.loops->max_windows_grad[disjoint](dx, dy + j * p.channels, x, windows);
      } else {
        p.loops->mean_windows_grad(dx, dy + j * p.channels, windows);
      }
    });
  }
  p.sink.store(args.out[0].data, at, cells, dx);
}

template <Kind kind>
Prepared prepare_pool_grad(const NodeView& node, const Capabilities& capabilities) {
  const Pool p(node, node.output().shape, capabilities);
  const std::int64_t outputs = has_disjoint_windows(p.h) ? p.output_row() : p.output_image();
  const std::int64_t scratch = 2 * strip_rows(p) * p.input_row() + outputs;
  return launch(
      [=](const Args& args) {
        p.for_each(
            args, p.batch * strips(p), scratch, [&](std::int64_t item, auto* offsets, auto* r) {
              pool_grad_strip<kind>(p, args, item, offsets, r);
            });
      },
      p.workspace_bytes(scratch));
}

Accepts accepts_pool(const NodeView& node, const Capabilities&) {
  const graph::TensorType& y = node.output();
  return y.shape.elements() == 0 ? Accepts::no("empty") : accepts_dtype(y.dtype);
}

}  // namespace

std::vector<Kernel> pool_kernels() {
  constexpr std::string_view k_name = "vector/pool";
  return {
      {"MaxPool", k_name, accepts_pool, prepare_pool<Kind::max>},
      {"MaxPoolGrad", k_name, accepts_pool, prepare_pool_grad<Kind::max>},
      {"AvgPool", k_name, accepts_pool, prepare_pool<Kind::average>},
      {"AvgPoolGrad", k_name, accepts_pool, prepare_pool_grad<Kind::average>},
  };
}

}  // namespace halfstep::backend::cpu::vector

// Pooling of x [N,H,W,C] and its gradients, in float32, one rounding on store.
//   max: a NaN is above all numbers; the gradient goes to the first largest cell in row-major order
//   average: over the cells that exist
// Stored dtypes: float32, float16, bfloat16.
// The same bits for every instruction set and number of threads.

#include <algorithm>
#include <limits>

#include "backend/cpu/vector/convert.h"
#include "backend/cpu/vector/rows.h"
#include "core/error.h"
#include "core/parallel.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cpu::vector {
namespace {

using graph::ops::WindowAxis;

enum class Kind { max, average };

/// A pooling, worked on by `parts` parties that have a share of the workspace each.
struct Pool {
  WindowAxis h, w;
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t parts = 1;
  Source source;
  Sink sink;
  const Loops* loops = nullptr;

  Pool(const NodeView& node, const Shape& x, const Capabilities& capabilities)
      : h(graph::ops::pool_window(node.attrs(), x).height),
        w(graph::ops::pool_window(node.attrs(), x).width),
        batch(x[0]),
        channels(x[3]),
        source(vector::loops(capabilities.isa), node.output().dtype),
        sink(vector::loops(capabilities.isa), node.output().dtype),
        loops(&vector::loops(capabilities.isa)) {
    constexpr std::int64_t k_grain = 16384;
    parts = std::clamp<std::int64_t>(x.elements() / k_grain, 1, capabilities.threads);
  }

  std::int64_t input_row() const { return w.input * channels; }
  std::int64_t output_row() const { return w.output * channels; }
  std::int64_t input_image() const { return h.input * input_row(); }
  std::int64_t output_image() const { return h.output * output_row(); }
  float cells(std::int64_t i, std::int64_t j) const {
    return static_cast<float>((h.last_tap(i) - h.first_tap(i)) * (w.last_tap(j) - w.first_tap(j)));
  }

  /// Calls body(item, room) for items 0, 1, ... of `count`, with `room_floats` of workspace.
  template <class F>
  void for_each(const Args& args,
                std::int64_t count,
                std::int64_t room_floats,
                const F& body) const {
    auto* workspace = static_cast<float*>(static_cast<void*>(args.workspace));
    parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        for (std::int64_t i = count * part / parts; i < count * (part + 1) / parts; ++i) {
          body(i, workspace + part * room_floats);
        }
      }
    });
  }
  std::size_t workspace_bytes(std::int64_t room_floats) const {
    return static_cast<std::size_t>(parts * room_floats) * sizeof(float);
  }
};

/// One row of outputs from the rows of x under it.
template <Kind kind>
void pool_row(const Pool& p, const Args& args, std::int64_t row, float* room) {
  const std::int64_t image = row / p.h.output;
  const std::int64_t i = row % p.h.output;
  float* y_room = room + p.input_row();
  float* y = p.sink.place(args.out[0].data, row * p.output_row(), y_room);
  constexpr float k_start = kind == Kind::max ? -std::numeric_limits<float>::infinity() : 0.0F;
  std::fill_n(y, p.output_row(), k_start);
  for (std::int64_t k = p.h.first_tap(i); k < p.h.last_tap(i); ++k) {
    const std::int64_t at = (image * p.h.input + p.h.cell(i, k)) * p.input_row();
    const float* x = p.source.read(args.in[0].data, at, p.input_row(), room);
    for (std::int64_t j = 0; j < p.w.output; ++j) {
      for (std::int64_t l = p.w.first_tap(j); l < p.w.last_tap(j); ++l) {
        const float* cell = x + p.w.cell(j, l) * p.channels;
        if constexpr (kind == Kind::max) {
          p.loops->take_larger(y + j * p.channels, cell, p.channels);
        } else {
          p.loops->add_scaled(y + j * p.channels, cell, 1.0F, p.channels);
        }
      }
    }
  }
  if constexpr (kind == Kind::average) {
    for (std::int64_t j = 0; j < p.w.output; ++j) {
      const float cells = p.cells(i, j);
      for (std::int64_t c = 0; c < p.channels; ++c) y[j * p.channels + c] /= cells;
    }
  }
  p.sink.store(args.out[0].data, row * p.output_row(), p.output_row(), y);
}

template <Kind kind>
Prepared prepare_pool(const NodeView& node, const Capabilities& capabilities) {
  const Pool p(node, node.input(0).shape, capabilities);
  const std::int64_t room = p.input_row() + p.output_row();
  return launch(
      [=](const Args& args) {
        p.for_each(args, p.batch * p.h.output, room, [&](std::int64_t row, float* part_room) {
          pool_row<kind>(p, args, row, part_room);
        });
      },
      p.workspace_bytes(room));
}

/// Calls body(offset of the first channel) for the cells of the window at output (i, j).
template <class F>
void for_each_cell(const Pool& p, std::int64_t i, std::int64_t j, const F& body) {
  for (std::int64_t k = p.h.first_tap(i); k < p.h.last_tap(i); ++k) {
    for (std::int64_t l = p.w.first_tap(j); l < p.w.last_tap(j); ++l) {
      body((p.h.cell(i, k) * p.w.input + p.w.cell(j, l)) * p.channels);
    }
  }
}

/// Gives dy of the window at output (i, j) to the largest cells of x.
void send_to_largest(
    const Pool& p, std::int64_t i, std::int64_t j, const float* x, const float* dy, float* dx) {
  alignas(64) float largest[k_run];
  alignas(64) float open[k_run];
  for (std::int64_t c = 0; c < p.channels; c += k_run) {
    const std::int64_t n = std::min(k_run, p.channels - c);
    std::fill_n(largest, n, -std::numeric_limits<float>::infinity());
    std::fill_n(open, n, 1.0F);
    for_each_cell(
        p, i, j, [&](std::int64_t cell) { p.loops->take_larger(largest, x + cell + c, n); });
    for_each_cell(p, i, j, [&](std::int64_t cell) {
      p.loops->send_to_largest(dx + cell + c, open, x + cell + c, largest, dy + c, n);
    });
  }
}

/// The gradient of one image: dx from dy, and for max from the op's input x.
template <Kind kind>
void pool_grad_image(const Pool& p, const Args& args, std::int64_t image, float* room) {
  const std::int64_t cells = p.input_image();
  const std::int64_t outputs = p.output_image();
  const auto* gradient = args.in[kind == Kind::max ? 2 : 1].data;
  float* dx = p.sink.place(args.out[0].data, image * cells, room);
  room += cells;
  const float* dy = p.source.read(gradient, image * outputs, outputs, room);
  room += outputs;
  const float* x =
      kind == Kind::max ? p.source.read(args.in[0].data, image * cells, cells, room) : nullptr;
  std::fill_n(dx, cells, 0.0F);
  for (std::int64_t i = 0; i < p.h.output; ++i) {
    for (std::int64_t j = 0; j < p.w.output; ++j, dy += p.channels) {
      if constexpr (kind == Kind::average) {
        const float share = 1.0F / p.cells(i, j);
        for_each_cell(p, i, j, [&](std::int64_t cell) {
          p.loops->add_scaled(dx + cell, dy, share, p.channels);
        });
      } else {
        send_to_largest(p, i, j, x, dy, dx);
      }
    }
  }
  p.sink.store(args.out[0].data, image * cells, cells, dx);
}

template <Kind kind>
Prepared prepare_pool_grad(const NodeView& node, const Capabilities& capabilities) {
  const Pool p(node, node.output().shape, capabilities);
  const std::int64_t room = 2 * p.input_image() + p.output_image();
  return launch(
      [=](const Args& args) {
        p.for_each(args, p.batch, room, [&](std::int64_t image, float* part_room) {
          pool_grad_image<kind>(p, args, image, part_room);
        });
      },
      p.workspace_bytes(room));
}

Accepts accepts_pool(const NodeView& node, const Capabilities&) {
  const graph::TensorType& y = node.output();
  if (!is_computed(y.dtype)) return Accepts::no(fmt::format("no {} here", name(y.dtype)));
  if (y.shape.elements() == 0) return Accepts::no("empty");
  return Accepts::yes();
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

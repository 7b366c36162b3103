// Convolutions of x [N,H,W,C] with filters [h,w,C,O], and their gradients, as products.
//
// An image is copied into a grid: its pixels row by row, channels last, with zeros where the window
// reaches past its sides. A float16 number becomes a high and a low bfloat16 number there, in two
// planes. In a grid the pixel under a tap lies a fixed distance from the pixel under the first tap,
// so that a run of positions of the grid times the filter values of a tap is a product whose first
// operand is read where it lies; results at positions that are not pixels are left out. With
// strides there is a grid for each residue of the pixel's coordinates, so that neighbouring outputs
// read neighbouring pixels. Where channels are few, what a position reads is gathered into rows.
//
// Gradient towards x: the same over the grid of dy with the taps in reverse, for each residue of
// x's pixels. Gradient towards the filter: positions are summed over, x transposed, dy in pairs of
// positions, of several images where these are small; threads sum over images of their own, and the
// sums are added in the order of the threads.
//
// A bias is added to the sums before they are rounded.
//
// Infinities and NaN: a result element is not finite wherever it is not by definition, and a result
// tensor holds such an element only if one is by definition, so that a check of tensors names the
// right one. Padding is multiplied as zeros, and zero times infinity is NaN: in a channel that
// meets a non-finite filter value or dy, elements at the image's border can be NaN without need.
// Taps that never meet a pixel and pixels that no window reads are left out of the product. The
// exception is a dy that is not finite under a window that lies in the padding altogether.

#include "backend/cpu/packed/conv.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/dispatch.h"
#include "core/parallel.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cpu::packed {
namespace {

using graph::ops::ConvGeometry;
using graph::ops::WindowAxis;
using I64 = std::int64_t;

constexpr I64 k_step = 32;            // numbers
constexpr I64 k_line = 64;            // bytes
constexpr I64 k_number = 2;           // bytes
constexpr I64 k_most_grid = 1 << 20;  // bytes of a grid that stays in the second-level cache
constexpr I64 k_gathered = 24 << 10;  // bytes of gathered rows

I64 divide_up(I64 x, I64 y) { return (x + y - 1) / y; }
I64 round_up(I64 x, I64 y) { return divide_up(x, y) * y; }

enum class Result { y, x, w };

/// Pixels [0, pixels_read()) contain all that the windows reach.
I64 pixels_read(const WindowAxis& a) {
  return std::clamp<I64>((a.output - 1) * a.stride + a.extent() - a.pad_before, 0, a.input);
}

ConvGeometry geometry(const NodeView& node, Result result) {
  return graph::ops::conv_geometry(node.attrs(),
                                   result == Result::x ? node.output().shape : node.input(0).shape,
                                   result == Result::w ? node.output().shape : node.input(1).shape);
}

Result result_of(const NodeView& node) {
  if (node.node.op == "Conv2DBackpropInput") return Result::x;
  return node.node.op == "Conv2DBackpropFilter" ? Result::w : Result::y;
}

/// Memory of a launch, handed out in lines.
class Room {
 public:
  I64 take(I64 bytes) {
    const I64 at = bytes_;
    bytes_ += round_up(bytes, k_line);
    return at;
  }
  I64 bytes() const { return bytes_; }

 private:
  I64 bytes_ = 0;
};

/// The grids of an image along one axis.
struct GridAxis {
  I64 input = 1;   ///< pixels of the image
  I64 read = 1;    ///< of these, the first ones, which the windows reach
  I64 before = 0;  ///< zeros in front of them
  I64 stride = 1;  ///< residues
  I64 cells = 1;   ///< of a grid

  /// Cells [0, wrap()) of every grid are zeros.
  I64 wrap() const { return before / stride; }
  /// Sets `cells` for `positions` positions that read cells below `needed`. Where rows wrap, a cell
  /// past the last one is the first of the next row, which may be read where it is zero.
  void reach(I64 needed, I64 positions, bool wrapped) {
    cells = std::max(
        {divide_up(input + before, stride), positions, needed - (wrapped ? wrap() : 0), I64{1}});
  }
};

struct Grid {
  GridAxis h, w;
  I64 channels = 1;
  I64 images = 1;  ///< one after the other
  I64 slack = 0;   ///< cells behind the last one that are read
  I64 parts = 1;   ///< planes

  I64 cells() const { return h.cells * w.cells; }  // of an image
  /// Of one residue.
  I64 numbers() const { return round_up((cells() * images + slack) * channels, k_step); }
  I64 plane_bytes() const { return numbers() * h.stride * w.stride * k_number; }
  I64 bytes() const { return plane_bytes() * parts; }
  I64 image_bytes() const { return h.input * w.input * channels * k_number; }
  /// Whether an image lies in memory as its grid does, and the next one reaches past the slack.
  bool is_image() const { return lies_as_grid() && bytes() <= 2 * image_bytes(); }
  bool lies_as_grid() const {
    return parts == 1 && h.stride == 1 && w.stride == 1 && h.before == 0 && w.before == 0 &&
           h.cells == h.input && w.cells == w.input && h.read == h.input && w.read == w.input;
  }

  /// Image `at` of the grid; zeros are there already.
  void fill(const ConvUnit& unit, std::byte* grid, const std::byte* image, I64 at) const {
    const auto copy = unit.copy[parts - 1];
    const I64 pixel = channels * k_number;
    for (I64 i = 0; i < h.read; ++i) {
      const I64 row = (i + h.before) / h.stride;
      const I64 residue_h = (i + h.before) % h.stride;
      const std::byte* from = image + i * w.input * pixel;
      for (I64 j = 0; j < std::min(w.stride, w.read); ++j) {
        const I64 residue = residue_h * w.stride + (j + w.before) % w.stride;
        const I64 cell = at * cells() + row * w.cells + (j + w.before) / w.stride;
        copy({.to = grid + (residue * numbers() + cell * channels) * k_number,
              .low = plane_bytes(),
              .from = from + j * pixel,
              .from_stride = w.stride * pixel,
              .pixels = divide_up(w.read - j, w.stride),
              .channels = channels});
      }
    }
  }
};

/// What a position reads: a cell of the grid, and the filter's values that it meets.
struct Tap {
  I64 number = 0;  ///< of the cell's first number, from the position's first cell
  I64 filter = 0;  ///< offset of the first value for k
};

/// Outputs of one residue, as a product.
struct Pass {
  std::vector<Tap> taps;
  I64 positions = 0;                ///< padded to a multiple of 64
  std::vector<std::int32_t> place;  ///< of each position: the pixel of the result, or -1
  std::vector<std::int32_t> base;   ///< gathered: the position's first number
  std::vector<std::int32_t> offsets;
  std::vector<std::int32_t> k_offset;
  std::vector<ConvPiece> pieces;
  std::vector<std::int32_t> ends;
  I64 steps = 0;
  I64 filter_at = 0;  ///< bytes
  bool gathered = false;

  /// Taps next to each other in the grid are one run of numbers. Where each has 32 or more, steps
  /// are read where they lie; the last one of a run may read some numbers again, and not what lies
  /// behind, which may not be finite. Else what a position reads is gathered.
  void choose(I64 channels) {
    I64 run = 0;
    for (std::size_t t = 0; t < taps.size(); ++t) {
      run += channels;
      const bool last = t + 1 == taps.size() || taps[t + 1].number != taps[t].number + channels;
      if (last && run < k_step) gathered = true;
      if (last) run = 0;
    }
  }

  /// Sets steps and what they read; k_stride: from one k to the next in the filter.
  void finish(I64 channels, I64 k_stride) {
    const auto k_of = [&](const Tap& tap, I64 c) {
      return static_cast<std::int32_t>(tap.filter + c * k_stride);
    };
    if (gathered) {
      I64 k = 0;
      for (const Tap& tap : taps) {
        for (I64 c = 0; c < channels; ++c, ++k) {
          if (k % k_step == 0) ends.push_back(0);
          k_offset.push_back(k_of(tap, c));
          const auto lane0 = static_cast<std::int32_t>(tap.number + c - k % k_step);
          const std::uint32_t bit = 1U << (k % k_step);
          if (k % k_step != 0 && pieces.back().offset == lane0) {
            pieces.back().lanes |= bit;
          } else {
            pieces.push_back({lane0, bit});
          }
          ends.back() = static_cast<std::int32_t>(pieces.size());
        }
      }
      steps = static_cast<I64>(ends.size());
      k_offset.resize(static_cast<std::size_t>(steps * k_step), -1);
      for (I64 i = 0; i < steps; ++i) offsets.push_back(static_cast<std::int32_t>(i * k_line));
      return;
    }
    std::vector<std::int32_t> run;  // of the filter
    I64 first = 0;
    for (std::size_t t = 0; t < taps.size(); ++t) {
      if (run.empty()) first = taps[t].number;
      for (I64 c = 0; c < channels; ++c) run.push_back(k_of(taps[t], c));
      if (t + 1 < taps.size() && taps[t + 1].number == taps[t].number + channels) continue;
      const auto length = static_cast<I64>(run.size());
      for (I64 done = 0; done < length; done += k_step, ++steps) {
        const I64 from = std::min(done, length - k_step);
        offsets.push_back(static_cast<std::int32_t>((first + from) * k_number));
        for (I64 k = from; k < from + k_step; ++k) {
          k_offset.push_back(k < done ? -1 : run[static_cast<std::size_t>(k)]);
        }
      }
      run.clear();
    }
  }
};

/// A product over the positions of an image: y (or dx) from the grid of x (or dy).
class OverPositions {
 public:
  Grid grid;
  std::vector<Pass> passes;
  I64 batch = 1, outputs = 1, result_pixels = 1, n_stride = 1;
  I64 apart = 1;  ///< cells from one position to the next
  I64 products = 1;
  std::size_t source_port = 0, filter_port = 1, bias_port = 0;
  const ConvUnit* unit = nullptr;

  Prepared prepare(int threads, double flops) {
    parts_ = std::clamp<I64>(static_cast<I64>(flops / (1 << 20)), 1, std::min<I64>(threads, batch));
    Room room;
    for (Pass& pass : passes) {
      // Forward filters lie with outputs last.
      pass.finish(grid.channels, n_stride == 1 ? outputs : 1);
      pass.filter_at = room.take(packed_filter_bytes(outputs, pass.steps, grid.parts));
      if (pass.gathered) {
        rows_bytes_ = std::max(rows_bytes_, run_of(pass) * pass.steps * k_line * grid.parts);
      }
    }
    bias_at_ = room.take(round_up(outputs, k_step) * 4);
    own_at_ = room.bytes();
    Room own;
    sums_at_ = own.take(2048 * 4);
    grid_at_ = own.take(grid.bytes());
    rows_at_ = own.take(rows_bytes_);
    own_bytes_ = own.bytes();
    const I64 bytes = own_at_ + parts_ * own_bytes_;
    return launch([self = std::move(*this)](const Args& args) { self.run(args); },
                  static_cast<std::size_t>(bytes));
  }

 private:
  I64 parts_ = 1;  ///< of the batch, each done by one thread
  I64 bias_at_ = 0, own_at_ = 0, own_bytes_ = 0;
  I64 sums_at_ = 0, grid_at_ = 0, rows_at_ = 0, rows_bytes_ = 0;

  /// Gathered rows at a time.
  static I64 run_of(const Pass& pass) {
    return std::max<I64>(k_gathered / (pass.steps * k_line + 1) / 64 * 64, 64);
  }

  void run(const Args& args) const {
    std::byte* room = args.workspace;
    const auto* filter = args.in[filter_port].as<const std::uint16_t>();
    const I64 grain = std::max<I64>(1, (1 << 13) / (outputs * k_step));
    for (const Pass& pass : passes) {
      parallel_for(pass.steps, grain, [&](I64 begin, I64 end) {
        for (I64 step = begin; step < end; ++step) {
          unit->pack_filter[grid.parts - 1]({.to = room + pass.filter_at,
                                             .filter = filter,
                                             .k_offset = pass.k_offset.data(),
                                             .steps = pass.steps,
                                             .n_stride = n_stride,
                                             .outputs = outputs},
                                            step);
        }
      });
    }
    const float* bias = nullptr;
    if (bias_port != 0) {
      auto* padded = reinterpret_cast<float*>(room + bias_at_);
      std::fill_n(padded, round_up(outputs, k_step), 0.0F);
      convert(args.in[bias_port], {DType::float32, {outputs}, padded});
      bias = padded;
    }
    const auto* source = args.in[source_port].as<const std::byte>();
    auto* result = args.out[0].as<std::byte>();
    // What lies behind the last image must not be read.
    const I64 in_place = grid.is_image() ? batch - 1 : 0;
    parallel_for(parts_, 1, [&](I64 begin, I64 end) {
      unit->begin();
      for (I64 part = begin; part < end; ++part) {
        std::byte* own = room + own_at_ + part * own_bytes_;
        const I64 last = batch * (part + 1) / parts_;
        if (last > in_place) {
          std::memset(own + grid_at_, 0, static_cast<std::size_t>(grid.bytes()));
        }
        for (I64 n = batch * part / parts_; n < last; ++n) {
          const std::byte* from = source + n * grid.image_bytes();
          if (n >= in_place) {
            grid.fill(*unit, own + grid_at_, from, 0);
            from = own + grid_at_;
          }
          std::byte* y = result + n * result_pixels * outputs * k_number;
          for (const Pass& pass : passes) image(pass, from, room, own, bias, y);
        }
      }
      unit->end();
    });
  }

  void image(const Pass& pass,
             const std::byte* cells,
             const std::byte* room,
             std::byte* own,
             const float* bias,
             std::byte* y) const {
    const auto sweep = unit->sweep[products == 1 ? 0 : products - 2];
    ConvSweep s{.a = cells,
                .low = grid.plane_bytes(),
                .row_bytes = apart * grid.channels * k_number,
                .offsets = pass.offsets.data(),
                .steps = pass.steps,
                .filter = room + pass.filter_at,
                .positions = pass.positions,
                .place = pass.place.data(),
                .y = y,
                .outputs = outputs,
                .bias = bias,
                .room = reinterpret_cast<float*>(own + sums_at_)};
    if (!pass.gathered) {
      sweep(s);
      return;
    }
    const I64 run = run_of(pass);
    for (I64 p = 0; p < pass.positions; p += run) {
      const I64 n = std::min(run, pass.positions - p);
      s.low = run * pass.steps * k_line;
      for (I64 part = 0; part < grid.parts; ++part) {
        unit->gather({.to = own + rows_at_ + part * s.low,
                      .from = cells + part * grid.plane_bytes(),
                      .base = pass.base.data() + p,
                      .positions = n,
                      .pieces = pass.pieces.data(),
                      .ends = pass.ends.data(),
                      .steps = pass.steps});
      }
      s.a = own + rows_at_;
      s.row_bytes = pass.steps * k_line;
      s.positions = n;
      s.place = pass.place.data() + p;
      sweep(s);
    }
  }
};

/// Outputs [first, first + count) along an axis, of which output o is pixel `scale` o + `shift` of
/// the result.
struct Outputs {
  I64 first = 0, count = 0, scale = 1, shift = 0;
};

/// Positions and places: outputs lie `apart` cells from each other in the grid, and `apart` rows.
void place_positions(
    Pass& pass, const Grid& grid, const Outputs& h, const Outputs& w, I64 width, I64 apart) {
  if (h.count <= 0 || w.count <= 0) return;
  const auto pixel = [&](I64 i, I64 j) {
    return static_cast<std::int32_t>(((h.first + i) * h.scale + h.shift) * width +
                                     (w.first + j) * w.scale + w.shift);
  };
  if (pass.gathered) {
    for (I64 i = 0; i < h.count; ++i) {
      for (I64 j = 0; j < w.count; ++j) {
        pass.place.push_back(pixel(i, j));
        pass.base.push_back(
            static_cast<std::int32_t>((i * grid.w.cells + j * apart) * grid.channels));
      }
    }
  } else {
    const I64 row = grid.w.cells / apart;
    const I64 last = (h.count - 1) * row + w.count;
    for (I64 p = 0; p < last; ++p) {
      pass.place.push_back(p % row < w.count ? pixel(p / row, p % row) : -1);
    }
  }
  pass.positions = round_up(static_cast<I64>(pass.place.size()), 64);
  pass.place.resize(static_cast<std::size_t>(pass.positions), -1);
  pass.base.resize(pass.place.size(), 0);
}

I64 products_of(const NodeView& node) {
  return node.output().dtype == DType::float16 ? node.attrs().get<I64>("float16_products") : 1;
}

double flops_of(const ConvGeometry& g) {
  const WindowAxis &h = g.window.height, &w = g.window.width;
  return 2.0 * static_cast<double>(g.batch * h.output * w.output * g.outputs * g.inputs) *
         static_cast<double>(h.size * w.size);
}

OverPositions forward(const NodeView& node) {
  const ConvGeometry g = geometry(node, Result::y);
  const WindowAxis &h = g.window.height, &w = g.window.width;
  OverPositions o;
  o.products = products_of(node);
  o.batch = g.batch;
  o.outputs = g.outputs;
  o.result_pixels = h.output * w.output;
  o.apart = w.stride;
  if (node.node.op == "Conv2DBias") o.bias_port = 2;
  Grid& grid = o.grid;
  grid.parts = o.products == 1 ? 1 : 2;
  grid.channels = g.inputs;
  // Rows have residues; along a row positions are a stride apart, in rows of whole strides.
  grid.h = {.input = h.input, .read = pixels_read(h), .before = h.pad_before, .stride = h.stride};
  grid.h.reach(h.output + (h.size - 1) * h.dilation / h.stride, h.output, false);
  grid.w = {.input = w.input, .read = pixels_read(w), .before = w.pad_before};
  grid.w.reach((w.output - 1) * w.stride + w.extent(), w.output * w.stride, true);
  grid.w.cells = round_up(grid.w.cells, w.stride);
  Pass pass;
  std::vector<I64> residues;
  for (I64 i = 0; i < h.size; ++i) {
    for (I64 j = 0; j < w.size; ++j) {
      if (!reads_input(h, i) || !reads_input(w, j)) continue;
      const I64 row = i * h.dilation;
      const I64 cell = row / h.stride * grid.w.cells + j * w.dilation;
      pass.taps.push_back({cell * g.inputs, (i * w.size + j) * g.inputs * g.outputs});
      residues.push_back(row % h.stride);
    }
  }
  pass.choose(g.inputs);
  place_positions(pass, grid, {0, h.output, 1, 0}, {0, w.output, 1, 0}, w.output, w.stride);
  I64 most = 0;
  for (const Tap& tap : pass.taps) most = std::max(most, tap.number / g.inputs);
  grid.slack =
      std::max<I64>(most + (pass.positions + k_step) * w.stride - grid.cells(), 0) + k_step;
  for (std::size_t t = 0; t < residues.size(); ++t) {
    pass.taps[t].number += residues[t] * grid.numbers();
  }
  o.passes.push_back(std::move(pass));
  return o;
}

OverPositions backward_data(const NodeView& node) {
  const ConvGeometry g = geometry(node, Result::x);
  const WindowAxis &h = g.window.height, &w = g.window.width;
  OverPositions o;
  o.products = products_of(node);
  o.batch = g.batch;
  o.outputs = g.inputs;
  o.result_pixels = h.input * w.input;
  o.n_stride = g.outputs;
  o.source_port = 2;
  Grid& grid = o.grid;
  grid.parts = o.products == 1 ? 1 : 2;
  grid.channels = g.outputs;
  // Pixel stride q + a - pad of x is under output q - (tap dilation - a) / stride of each tap whose
  // distance is a modulo the stride.
  const auto reach = [](const WindowAxis& a) { return (a.size - 1) * a.dilation / a.stride; };
  const auto outputs = [](const WindowAxis& a, I64 residue) {
    const I64 first = divide_up(std::max<I64>(a.pad_before - residue, 0), a.stride);
    const I64 past = a.input - 1 + a.pad_before - residue;
    const I64 count = past < 0 ? 0 : past / a.stride - first + 1;
    return Outputs{first, count, a.stride, residue - a.pad_before};
  };
  const auto axis = [&](const WindowAxis& a, bool wrapped) {
    GridAxis x{.input = a.output, .read = a.output, .before = reach(a)};
    const I64 positions = (a.input - 1 + a.pad_before) / a.stride + 1;
    x.reach(positions + reach(a), positions, wrapped);
    return x;
  };
  grid.h = axis(h, false);
  grid.w = axis(w, true);
  I64 most = 0;
  for (I64 a = 0; a < h.stride; ++a) {
    for (I64 b = 0; b < w.stride; ++b) {
      Pass pass;
      const Outputs rows = outputs(h, a), columns = outputs(w, b);
      for (I64 i = h.size - 1; i >= 0; --i) {
        for (I64 j = w.size - 1; j >= 0; --j) {
          if (i * h.dilation % h.stride != a || j * w.dilation % w.stride != b) continue;
          if (!reads_input(h, i) || !reads_input(w, j)) continue;
          const I64 row = rows.first + reach(h) - i * h.dilation / h.stride;
          const I64 column = columns.first + reach(w) - j * w.dilation / w.stride;
          pass.taps.push_back(
              {(row * grid.w.cells + column) * g.outputs, (i * w.size + j) * g.inputs * g.outputs});
        }
      }
      pass.choose(g.outputs);
      place_positions(pass, grid, rows, columns, w.input, 1);
      if (pass.positions == 0) continue;
      for (const Tap& tap : pass.taps) {
        most = std::max(most, tap.number / g.outputs + pass.positions);
      }
      o.passes.push_back(std::move(pass));
    }
  }
  grid.slack = std::max<I64>(most - grid.cells(), 0) + 2 * k_step;
  return o;
}

/// The gradient towards the filter.
class OverImages {
 public:
  explicit OverImages(const NodeView& node, const ConvUnit& unit, int threads);

  I64 workspace_bytes() const { return own_at_ + parts_ * own_bytes_; }
  void run(const Args& args) const;

 private:
  /// Rows of a tile: rows `first` + r `apart` of the filter seen as [taps C, O].
  struct Rows {
    I64 first, apart, count;
  };

  void sum_images(
      std::byte* own, const std::byte* x, const std::byte* dy, I64 begin, I64 end) const;
  template <class T>
  void store(const std::byte* room, T* w) const;

  const ConvUnit* unit_;
  I64 products_, batch_, inputs_, outputs_;
  Grid x_;
  I64 rows_of_dy_, row_of_dy_;  ///< pixels down and across
  std::vector<FilterTile> tiles_;
  std::vector<Rows> rows_;
  std::vector<bool> tap_reads_;  ///< false: the tap is in the padding for every output
  bool transposed_;              ///< else one channel: x lies as its transpose
  I64 pitch_ = 0;                ///< bytes from row to row of the transposed x
  I64 transposed_plane_ = 0, pairs_plane_ = 0, steps_ = 0;
  I64 parts_ = 1;
  I64 own_at_ = 0, own_bytes_ = 0, sums_at_ = 0, x_at_ = 0, transposed_at_ = 0, pairs_at_ = 0;
};

OverImages::OverImages(const NodeView& node, const ConvUnit& unit, int threads) : unit_(&unit) {
  const ConvGeometry g = geometry(node, Result::w);
  const WindowAxis &h = g.window.height, &w = g.window.width;
  products_ = products_of(node);
  batch_ = g.batch;
  inputs_ = g.inputs;
  outputs_ = g.outputs;
  transposed_ = inputs_ > 1;
  parts_ =
      std::clamp<I64>(static_cast<I64>(flops_of(g) / (1 << 20)), 1, std::min<I64>(threads, batch_));
  x_.parts = products_ == 1 ? 1 : 2;
  x_.channels = inputs_;
  rows_of_dy_ = h.output;
  row_of_dy_ = w.output;
  const auto axis = [](const WindowAxis& a) {
    GridAxis x{
        .input = a.input, .read = pixels_read(a), .before = a.pad_before, .stride = a.stride};
    // Behind an image is the next one, whose first rows are zeros as well.
    x.reach(a.output + (a.size - 1) * a.dilation / a.stride, a.output, true);
    return x;
  };
  x_.h = axis(h);
  x_.w = axis(w);
  // Rows of dy begin with a pair of positions.
  x_.w.cells = round_up(x_.w.cells, 2);
  constexpr I64 k_positions = 768;
  const I64 images = std::clamp<I64>(k_positions / x_.cells(), 1, divide_up(batch_, parts_));
  x_.images = images;
  steps_ = divide_up((images - 1) * x_.cells() + (h.output - 1) * x_.w.cells + w.output, k_step);
  const I64 positions = steps_ * k_step;
  const I64 farthest =
      (h.size - 1) * h.dilation / h.stride * x_.w.cells + (w.size - 1) * w.dilation / w.stride;
  x_.slack = std::max<I64>(round_up(positions + farthest, k_step) + 64 - images * x_.cells(), 0);

  // A row of the transposed x: one channel of one residue, all positions.
  const I64 row_positions = images * x_.cells() + x_.slack;
  pitch_ = transposed_ ? round_up(row_positions * k_number, k_line) + k_line : 0;
  const I64 blocks = divide_up(inputs_, 16);
  transposed_plane_ = transposed_ ? pitch_ * 16 * blocks * h.stride * w.stride : x_.plane_bytes();
  pairs_plane_ = divide_up(outputs_, 16) * steps_ * 1024;
  for (I64 tap = 0; tap < h.size * w.size; ++tap) {
    tap_reads_.push_back(reads_input(h, tap / w.size) && reads_input(w, tap % w.size));
  }
  // All taps of a pair of channel blocks, one after the other, read the same rows.
  for (I64 pair = 0; pair < blocks; pair += 2) {
    for (I64 tap = 0; tap < h.size * w.size; ++tap) {
      const I64 i = tap / w.size, j = tap % w.size;
      const I64 row = i * h.dilation, column = j * w.dilation;
      const I64 residue = row % h.stride * w.stride + column % w.stride;
      const I64 cell = row / h.stride * x_.w.cells + column / w.stride;
      if (transposed_) {
        for (I64 b = pair; b < std::min(pair + 2, blocks); ++b) {
          tiles_.push_back({(residue * blocks + b) * 16 * pitch_ + cell * k_number, pitch_});
          rows_.push_back({tap * inputs_ + b * 16, 1, std::min<I64>(16, inputs_ - b * 16)});
        }
      } else if (w.dilation == 1) {
        // Taps of a row that share a residue lie next to each other: row r of a tile is tap
        // j + r stride.
        if (j >= w.stride && j / w.stride % 16 != 0) continue;
        tiles_.push_back({(residue * x_.numbers() + cell) * k_number, k_number});
        rows_.push_back({tap, w.stride, std::min<I64>(16, divide_up(w.size - j, w.stride))});
      } else {
        tiles_.push_back({(residue * x_.numbers() + cell) * k_number, k_number});
        rows_.push_back({tap, 1, 1});
      }
    }
  }
  Room own;
  sums_at_ = own.take(static_cast<I64>(tiles_.size()) * divide_up(outputs_, 16) * 1024);
  x_at_ = own.take(x_.bytes());
  transposed_at_ = own.take(transposed_ ? transposed_plane_ * x_.parts : 0);
  pairs_at_ = own.take(pairs_plane_ * x_.parts);
  own_bytes_ = own.bytes();
}

void OverImages::run(const Args& args) const {
  std::byte* room = args.workspace;
  const auto* x = args.in[0].as<const std::byte>();
  const auto* dy = args.in[2].as<const std::byte>();
  parallel_for(parts_, 1, [&](I64 begin, I64 end) {
    unit_->begin();
    for (I64 part = begin; part < end; ++part) {
      sum_images(room + own_at_ + part * own_bytes_,
                 x,
                 dy,
                 batch_ * part / parts_,
                 batch_ * (part + 1) / parts_);
    }
    unit_->end();
  });
  if (args.out[0].dtype == DType::bfloat16) {
    store(room, args.out[0].as<bfloat16>());
  } else {
    store(room, args.out[0].as<float16>());
  }
}

void OverImages::sum_images(
    std::byte* own, const std::byte* x, const std::byte* dy, I64 begin, I64 end) const {
  const I64 blocks = divide_up(inputs_, 16);
  const I64 across = divide_up(outputs_, 16);
  const I64 residues = x_.h.stride * x_.w.stride;
  const I64 dy_row = row_of_dy_ * outputs_ * k_number;
  const bool in_place = transposed_ && x_.lies_as_grid();
  if (!in_place) std::memset(own + x_at_, 0, static_cast<std::size_t>(x_.bytes()));
  std::memset(own + pairs_at_, 0, static_cast<std::size_t>(pairs_plane_ * x_.parts));
  for (I64 n = begin; n < end; n += x_.images) {
    const I64 images = std::min(x_.images, end - n);
    const I64 steps = std::min(steps_, divide_up(images * x_.cells(), k_step));
    if (images < x_.images && n != begin) {
      // What is left of the images before.
      std::memset(own + pairs_at_, 0, static_cast<std::size_t>(pairs_plane_ * x_.parts));
    }
    for (I64 i = 0; i < images; ++i) {
      if (!in_place) x_.fill(*unit_, own + x_at_, x + (n + i) * x_.image_bytes(), i);
      for (I64 row = 0; row < rows_of_dy_; ++row) {
        unit_->pair[x_.parts - 1]({.to = own + pairs_at_ + (i * x_.cells() + row * x_.w.cells) * 32,
                                   .low = pairs_plane_,
                                   .column_bytes = steps_ * 1024,
                                   .from = dy + ((n + i) * rows_of_dy_ + row) * dy_row,
                                   .pixels = row_of_dy_,
                                   .channels = outputs_});
      }
    }
    const I64 cells = images * x_.cells() + (in_place ? 0 : x_.slack);
    for (I64 plane = 0; transposed_ && plane < x_.parts * residues; ++plane) {
      const I64 p = plane / residues, r = plane % residues;
      const std::byte* from =
          in_place ? x + n * x_.image_bytes()
                   : own + x_at_ + p * x_.plane_bytes() + r * x_.numbers() * k_number;
      for (I64 b = 0; b < blocks; ++b) {
        std::byte* to =
            own + transposed_at_ + p * transposed_plane_ + (r * blocks + b) * 16 * pitch_;
        for (I64 cell = 0; cell < x_.images * x_.cells() + x_.slack; cell += k_step) {
          unit_->transpose(to + cell * k_number,
                           pitch_,
                           from + (cell * inputs_ + b * 16) * k_number,
                           inputs_ * k_number,
                           cells - cell,
                           inputs_ - b * 16);
        }
      }
    }
    unit_->filter_sweep[products_ == 1 ? 0 : products_ - 2](
        {.a = own + (transposed_ ? transposed_at_ : x_at_),
         .low_a = transposed_plane_,
         .tiles = tiles_.data(),
         .down = static_cast<I64>(tiles_.size()),
         .b = own + pairs_at_,
         .low_b = pairs_plane_,
         .column_bytes = steps_ * 1024,
         .across = across,
         .steps = steps,
         .first = n == begin,
         .sums = reinterpret_cast<float*>(own + sums_at_)});
  }
}

template <class T>
void OverImages::store(const std::byte* room, T* w) const {
  const I64 across = divide_up(outputs_, 16);
  parallel_for(static_cast<I64>(tiles_.size()), 16, [&](I64 begin, I64 end) {
    for (I64 t = begin; t < end; ++t) {
      const Rows& rows = rows_[static_cast<std::size_t>(t)];
      for (I64 r = 0; r < rows.count; ++r) {
        const I64 row = rows.first + r * rows.apart;
        T* to = w + row * outputs_;
        if (!tap_reads_[static_cast<std::size_t>(row / inputs_)]) {
          std::fill_n(to, outputs_, static_cast<T>(0.0F));
          continue;
        }
        for (I64 j = 0; j < across; ++j) {
          float sum[16];
          for (I64 part = 0; part < parts_; ++part) {
            const auto* from =
                reinterpret_cast<const float*>(room + own_at_ + part * own_bytes_ + sums_at_) +
                (t * across + j) * 256 + r * 16;
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

bool reads_input(const WindowAxis& axis, I64 k) {
  const I64 shift = k * axis.dilation - axis.pad_before;
  const I64 first = shift >= 0 ? 0 : divide_up(-shift, axis.stride);
  return first < axis.output && first * axis.stride + shift < axis.input;
}

Accepts accepts_conv(const NodeView& node) {
  const DType dtype = node.output().dtype;
  if (!is_half(dtype)) return Accepts::no("not a 16-bit dtype");
  const Result result = result_of(node);
  const ConvGeometry g = geometry(node, result);
  if (g.groups > 1) return Accepts::no("groups");
  if (g.x_shape().elements() == 0 || g.y_shape().elements() == 0 || g.inputs == 0 ||
      g.window.height.size * g.window.width.size == 0) {
    return Accepts::no("empty");
  }
  const I64 x = (g.window.height.input + g.window.height.pad_before + g.window.height.pad_after) *
                (g.window.width.input + g.window.width.pad_before + g.window.width.pad_after);
  const I64 y = g.window.height.output * g.window.width.output;
  if (std::max(x * g.inputs, y * g.outputs) * k_number > k_most_grid) {
    return Accepts::no("an image larger than the second-level cache");
  }
  // Offsets into an image and into the filter are of 32 bits.
  if (g.window.height.size * g.window.width.size * g.inputs * g.outputs > (I64{1} << 31) - 1) {
    return Accepts::no("a filter of more than 2^31 values");
  }
  return Accepts::yes();
}

Prepared prepare_conv_forward(const NodeView& node, const ConvUnit& unit, int threads) {
  OverPositions o = forward(node);
  o.unit = &unit;
  return o.prepare(threads, flops_of(geometry(node, Result::y)));
}

Prepared prepare_conv_backward_data(const NodeView& node, const ConvUnit& unit, int threads) {
  OverPositions o = backward_data(node);
  o.unit = &unit;
  return o.prepare(threads, flops_of(geometry(node, Result::x)));
}

Prepared prepare_conv_backward_filter(const NodeView& node, const ConvUnit& unit, int threads) {
  OverImages o(node, unit, threads);
  const auto bytes = static_cast<std::size_t>(o.workspace_bytes());
  return launch([o = std::move(o)](const Args& args) { o.run(args); }, bytes);
}

}  // namespace halfstep::backend::cpu::packed

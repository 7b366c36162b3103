// Optimizer updates in place, one pass over memory. Formulas at the ops' definitions. Arithmetic in
// float32, one rounding per stored tensor; the new weight uses the unrounded slot. When the last
// input `ok` is false nothing is written. A FusedUpdate also reads 16-bit gradients, unscales them
// and packs the new weights, bit-identical to the ops it replaces. Stored dtypes: float32, float16,
// bfloat16. Bit-identical for every instruction set and number of threads.
//
// Subnormal numbers are zeros here. The average of a gradient that has become zero, as behind a
// ReLU that no sample activates, decays to a subnormal that its factor rounds to itself, and every
// further step would pay for it.

#include "backend/cpu/vector/update.h"

#include <algorithm>

#include "backend/cpu/vector/rows.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/subnormals.h"
#include "graph/ops/ops.h"

namespace halfstep::backend::cpu::vector {
namespace {

/// Bytes of a value of the packed dtype.
constexpr std::int64_t k_narrow_bytes = 2;

}  // namespace

UpdateRule::UpdateRule(const Loops& loops, std::string_view op, const graph::Attrs& attrs)
    : row(std::find_if(loops.updates.begin(),
                       loops.updates.end(),
                       [&](const UpdateRow& r) { return op == r.op; })),
      loop(row->flag != nullptr && attrs.get<bool>(row->flag) ? row->flagged : row->loop),
      weight_decay(static_cast<float>(attrs.get_or<double>("weight_decay", 0))) {
  const std::size_t input = graph::ops::rate_of(*graph::op_table().find(op));
  rate = input - resources() - (input > gradient() ? 1 : 0);
}

void UpdateRule::run(float* const* state,
                     const float* gradient,
                     std::int64_t n,
                     const float* scalars) const {
  const FlushSubnormals flush;
  if (weight_decay != 0) {
    const float decay = weight_decay * scalars[rate];
    float* w = state[0];
    for (std::int64_t i = 0; i < n; ++i) w[i] = w[i] - w[i] * decay;
  }
  loop(state, gradient, n, scalars);
}

std::array<float, k_max_scalars> UpdateRule::scalars(const Args& args,
                                                     std::size_t inputs,
                                                     const Source& source) const {
  std::array<float, k_max_scalars> all{};
  std::size_t count = 0;
  for (std::size_t i = resources(); i < inputs; ++i) {
    if (i == gradient()) continue;
    float& scalar = all[count++];
    scalar = *source.read(args.in[i].data, 0, 1, &scalar);
  }
  return all;
}

FusedUpdate::FusedUpdate(const NodeView& node,
                         const graph::TensorType& gradient,
                         const Capabilities& capabilities)
    : loops_(&loops(capabilities.isa)),
      ports_(graph::ops::fused_update_ports(node.node)),
      rule_(*loops_, node.attrs().get<std::string>("rule"), node.attrs()),
      gradient_(*loops_, gradient.dtype),
      scale_(scale_loop(*loops_, gradient.dtype)),
      shape_(gradient.shape),
      blocks_(&packed::blocks(capabilities.isa)) {
  for (std::size_t i = ports_.packed_begin; i < ports_.packed_end; ++i) {
    const graph::Attrs& attrs = node.producer(i).attrs;
    const auto dtype = attrs.get<DType>("dtype");
    packings_.push_back(packed::Packing::of_update({dtype, shape_}, attrs, *blocks_));
    narrow_ = narrow_loop(*loops_, dtype);
  }
}

FusedUpdate::Step FusedUpdate::step(const Args& args) const {
  return {args,
          rule_.scalars(args, ports_.rule.inputs, Source()),
          *args.in[ports_.unscale].as<float>()};
}

void FusedUpdate::elements(const Step& step,
                           std::int64_t i,
                           std::int64_t n,
                           const std::byte* gradient) const {
  alignas(64) float scratch[k_run];
  const float* g = scratch;
  if (step.unscale != 1) {
    scale_(scratch, gradient, step.unscale, n);
  } else {
    g = gradient_.read(gradient, 0, n, scratch);
  }
  float* state[k_max_resources];
  for (std::size_t s = 0; s < rule_.resources(); ++s) state[s] = step.args.in[s].as<float>() + i;
  rule_.run(state, g, n, step.scalars.data());
}

std::int64_t FusedUpdate::rows_of(const Piece& piece) const {
  return std::min(packed::k_block, shape_[0] - piece.panel * packed::k_block);
}

void FusedUpdate::rows(const Step& step,
                       const Piece& piece,
                       std::int64_t begin,
                       std::int64_t end) const {
  const std::int64_t first = piece.panel * packed::k_block;
  // Contiguous rows are processed as one run.
  const bool whole = piece.columns == shape_[1] && piece.columns == piece.stride;
  const std::int64_t run = whole ? (end - begin) * piece.columns : piece.columns;
  for (std::int64_t row = begin; row < (whole ? begin + 1 : end); ++row) {
    for (std::int64_t c = 0; c < run; c += k_run) {
      const std::int64_t n = std::min(k_run, run - c);
      const std::int64_t at = (first + row) * shape_[1] + piece.column + c;
      elements(step, at, n, piece.gradient + (row * piece.stride + c) * gradient_.size);
      if (!packs()) continue;
      narrow_(piece.scratch + (row * piece.columns + c) * k_narrow_bytes,
              step.args.in[0].as<float>() + at,
              n);
    }
  }
}

void FusedUpdate::ask_for(const Step& step,
                          const Piece& piece,
                          std::int64_t begin,
                          std::int64_t end) const {
  constexpr std::int64_t k_line = 64 / sizeof(float);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t at = (piece.panel * packed::k_block + row) * shape_[1] + piece.column;
    for (std::size_t s = 0; s < rule_.resources(); ++s) {
      const float* x = step.args.in[s].as<float>() + at;
      for (std::int64_t c = 0; c < piece.columns; c += k_line) __builtin_prefetch(x + c, 1);
    }
  }
}

void FusedUpdate::pack(const Step& step, const Piece& piece) const {
  const std::int64_t rows = rows_of(piece);
  for (std::size_t p = 0; p < packings_.size(); ++p) {
    auto* to = step.args.in[ports_.packed_begin + p].as<std::byte>();
    for (std::int64_t c = 0; c < piece.columns; c += packed::k_block) {
      packings_[p].pack_block({piece.scratch + c * k_narrow_bytes,
                               piece.columns,
                               rows,
                               std::min(packed::k_block, piece.columns - c)},
                              to,
                              piece.panel,
                              (piece.column + c) / packed::k_block);
    }
  }
}

Accepts accepts_fused_update(const NodeView& node, DType gradient) {
  if (!is_computed(gradient)) return Accepts::no(fmt::format("no {} here", name(gradient)));
  const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node.node);
  const auto packed_dtype = [&](std::size_t i) {
    return node.producer(i).attrs.get<DType>("dtype");
  };
  for (std::size_t i = ports.packed_begin; i < ports.packed_end; ++i) {
    if (packed_dtype(i) != packed_dtype(ports.packed_begin)) {
      return Accepts::no("packed in two dtypes");
    }
  }
  return Accepts::yes();
}

namespace {

constexpr std::int64_t k_update_grain = 16384;
/// Columns of which a FusedUpdate packs 32 rows at a time: their copy in the packed dtype is a
/// quarter of a second-level cache.
constexpr std::int64_t k_band_columns = 4096;
constexpr std::int64_t k_scratch_bytes = packed::k_block * k_band_columns * k_narrow_bytes;

Accepts accepts_update(const NodeView& node, const Capabilities&) {
  const DType dtype = node.attrs().get<DType>("T");
  if (!is_computed(dtype)) return Accepts::no(fmt::format("no {} here", name(dtype)));
  return Accepts::yes();
}

bool skips(const Args& args, bool guarded) { return guarded && !*args.in.back().as<bool>(); }

Prepared prepare_update(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const UpdateRule rule(l, node.node.op, node.attrs());
  const DType dtype = node.attrs().get<DType>("T");
  const Source source(l, dtype);
  const Sink sink(l, dtype);
  return launch([=](const Args& args) {
    const bool guarded = args.in.back().dtype == DType::boolean;
    if (skips(args, guarded)) return;
    const auto scalars = rule.scalars(args, args.in.size() - (guarded ? 1 : 0), source);
    const TensorView& gradient = args.in[rule.gradient()];
    parallel_for(gradient.elements(), k_update_grain, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float scratch[k_max_resources + 1][k_run];
      float* state[k_max_resources];
      for (std::int64_t i = begin; i < end; i += k_run) {
        const std::int64_t n = std::min(k_run, end - i);
        const float* g = source.read(gradient.data, i, n, scratch[k_max_resources]);
        for (std::size_t s = 0; s < rule.resources(); ++s) {
          // Where nothing is widened the loop works on the variable in place.
          source.read(args.in[s].data, i, n, scratch[s]);
          state[s] = sink.place(args.in[s].data, i, scratch[s]);
        }
        rule.run(state, g, n, scalars.data());
        for (std::size_t s = 0; s < rule.resources(); ++s) {
          sink.store(args.in[s].data, i, n, state[s]);
        }
      }
    });
  });
}

Accepts accepts_fused(const NodeView& node, const Capabilities&) {
  const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node.node);
  return accepts_fused_update(node, node.input(ports.rule.gradient).dtype);
}

Prepared prepare_fused(const NodeView& node, const Capabilities& capabilities) {
  const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node.node);
  const graph::TensorType& gradient = node.input(ports.rule.gradient);
  const FusedUpdate update(node, gradient, capabilities);
  const auto gradient_at = [=, size = static_cast<std::int64_t>(size_bytes(gradient.dtype))](
                               const Args& args, std::int64_t i) {
    return args.in[ports.rule.gradient].as<const std::byte>() + i * size;
  };
  if (!update.packs()) {
    return launch([=, elements = gradient.shape.elements()](const Args& args) {
      if (skips(args, ports.guarded)) return;
      const FusedUpdate::Step step = update.step(args);
      parallel_for(elements, k_update_grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i += k_run) {
          update.elements(step, i, std::min(k_run, end - i), gradient_at(args, i));
        }
      });
    });
  }
  const std::int64_t width = gradient.shape[1];
  const std::int64_t bands = (gradient.shape[0] + packed::k_block - 1) / packed::k_block;
  // Each part of the bands has a scratch buffer. A part that is too small to wake a thread for,
  // as of the 64 x 2 weights of a last layer, would cost more than it saves.
  const std::int64_t parts = std::clamp<std::int64_t>(
      std::min(bands, gradient.shape.elements() / k_update_grain), 1, capabilities.threads);
  // At least 2^17 elements per piece, so that the atomic increment to claim one is negligible.
  constexpr std::int64_t k_piece = std::int64_t{1} << 17;
  const std::int64_t pieces =
      std::clamp(gradient.shape.elements() / k_piece, parts, std::max(parts, bands));
  return launch(
      [=](const Args& args) {
        if (skips(args, ports.guarded)) return;
        const FusedUpdate::Step step = update.step(args);
        parallel_tasks(pieces, parts, [&](std::int64_t piece, std::int64_t part) {
          for (std::int64_t i = bands * piece / pieces; i < bands * (piece + 1) / pieces; ++i) {
            for (std::int64_t column = 0; column < width; column += k_band_columns) {
              const FusedUpdate::Piece band{i,
                                            column,
                                            std::min(width - column, k_band_columns),
                                            gradient_at(args, i * packed::k_block * width + column),
                                            width,
                                            args.workspace + part * k_scratch_bytes};
              update.rows(step, band, 0, update.rows_of(band));
              update.pack(step, band);
            }
          }
          update.done();
        });
      },
      static_cast<std::size_t>(parts * k_scratch_bytes));
}

}  // namespace

std::vector<Kernel> update_kernels() {
  std::vector<Kernel> rows;
  for (const UpdateRow& row : baseline_loops().updates) {
    rows.push_back({row.op, "vector/update", accepts_update, prepare_update});
  }
  rows.push_back({"FusedUpdate", "vector/update", accepts_fused, prepare_fused});
  return rows;
}

}  // namespace halfstep::backend::cpu::vector

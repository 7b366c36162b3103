// Optimizer updates in place, in one pass over memory. Arithmetic in float32, one rounding per
// stored tensor; the new weight uses the unrounded slot. Nothing is written if the last input `ok`
// is false. A FusedUpdate also reads 16-bit gradients, unscales them and packs the new weights,
// bit-identical to the ops it replaces. Stored dtypes: float32, float16, bfloat16. Bit-identical
// for every instruction set and number of threads.
//
// Subnormal values are flushed to zero. The moving average of a gradient that has become zero, as
// after a ReLU that no sample activates, decays to a subnormal value that multiplication by its
// decay rounds to itself, and slow subnormal arithmetic would cost time in every later step.

#include "backend/cpu/vector/update.h"

#include <algorithm>

#include "backend/cpu/vector/kernels.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/subnormals.h"
#include "graph/ops/ops.h"

namespace halfstep::backend::cpu::vector {
namespace {

/// Bytes of a value of the packed dtype.
constexpr std::int64_t k_packed_value_bytes = 2;

}  // namespace

UpdateRule::UpdateRule(const Loops& loops, std::string_view op, const graph::Attrs& attrs)
    : ports(graph::ops::update_ports(*graph::op_table().find(op))),
      inputs(scalar_inputs<float>(*graph::op_table().find(op))) {
  const UpdateLoop& row = *find_entry(loops.updates, op);
  const UpdateOptions options(attrs, row.flag);
  loop = row.loops[options.flag ? 1 : 0];
  weight_decay = static_cast<float>(options.weight_decay);
}

void UpdateRule::run(float* const* state,
                     const float* gradient,
                     std::int64_t n,
                     const functions::UpdateScalars<float>& scalars) const {
  const FlushSubnormals flush;
  if (weight_decay != 0) {
    const float decay = weight_decay * scalars.rate;
    float* w = state[0];
    for (std::int64_t i = 0; i < n; ++i) w[i] = w[i] - w[i] * decay;
  }
  loop(state, gradient, n, scalars);
}

functions::UpdateScalars<float> UpdateRule::scalars(const Args& args, const Source& source) const {
  functions::UpdateScalars<float> all;
  for (const auto& [scalar, input] : inputs) {
    all.*scalar = *source.read(args.in[input].data, 0, 1, &(all.*scalar));
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
      blocks_(&packed::block_kernels(capabilities.isa)) {
  for (std::size_t i = ports_.packed_begin; i < ports_.packed_end; ++i) {
    const graph::Attrs& attrs = node.producer(i).attrs;
    const auto dtype = attrs.get<DType>("dtype");
    packings_.push_back(packed::Packing::of_update({dtype, shape_}, attrs, *blocks_));
    narrow_ = narrow_loop(*loops_, dtype);
  }
}

FusedUpdate::Inputs FusedUpdate::inputs(const Args& args) const {
  return {args, rule_.scalars(args, Source()), *args.in[ports_.unscale].as<float>()};
}

void FusedUpdate::elements(const Inputs& inputs,
                           std::int64_t i,
                           std::int64_t n,
                           const std::byte* gradient) const {
  alignas(64) float scratch[k_run];
  const float* g = scratch;
  if (inputs.unscale != 1) {
    scale_(scratch, gradient, inputs.unscale, n);
  } else {
    g = gradient_.read(gradient, 0, n, scratch);
  }
  float* state[k_max_resources];
  for (std::size_t s = 0; s < ports_.rule.resources; ++s) {
    state[s] = inputs.args.in[s].as<float>() + i;
  }
  rule_.run(state, g, n, inputs.scalars);
}

std::int64_t FusedUpdate::rows_of(const Tile& tile) const {
  return std::min(packed::k_block_size, shape_[0] - tile.panel * packed::k_block_size);
}

void FusedUpdate::rows(const Inputs& inputs,
                       const Tile& tile,
                       std::int64_t begin,
                       std::int64_t end) const {
  const std::int64_t first = tile.panel * packed::k_block_size;
  // Contiguous rows are processed as one run.
  const bool contiguous = tile.columns == shape_[1] && tile.columns == tile.stride;
  const std::int64_t run = contiguous ? (end - begin) * tile.columns : tile.columns;
  for (std::int64_t row = begin; row < (contiguous ? begin + 1 : end); ++row) {
    for (std::int64_t c = 0; c < run; c += k_run) {
      const std::int64_t n = std::min(k_run, run - c);
      const std::int64_t at = (first + row) * shape_[1] + tile.column + c;
      elements(inputs, at, n, tile.gradient + (row * tile.stride + c) * gradient_.size);
      if (!packs()) continue;
      narrow_(tile.scratch + (row * tile.columns + c) * k_packed_value_bytes,
              inputs.args.in[0].as<float>() + at,
              n);
    }
  }
}

void FusedUpdate::prefetch(const Inputs& inputs,
                           const Tile& tile,
                           std::int64_t begin,
                           std::int64_t end) const {
  constexpr std::int64_t k_line = 64 / sizeof(float);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t at = (tile.panel * packed::k_block_size + row) * shape_[1] + tile.column;
    for (std::size_t s = 0; s < ports_.rule.resources; ++s) {
      const float* x = inputs.args.in[s].as<float>() + at;
      for (std::int64_t c = 0; c < tile.columns; c += k_line) __builtin_prefetch(x + c, 1);
    }
  }
}

void FusedUpdate::pack(const Inputs& inputs, const Tile& tile) const {
  const std::int64_t rows = rows_of(tile);
  for (std::size_t p = 0; p < packings_.size(); ++p) {
    auto* to = inputs.args.in[ports_.packed_begin + p].as<std::byte>();
    for (std::int64_t c = 0; c < tile.columns; c += packed::k_block_size) {
      packings_[p].pack_block({tile.scratch + c * k_packed_value_bytes,
                               tile.columns,
                               rows,
                               std::min(packed::k_block_size, tile.columns - c)},
                              to,
                              tile.panel,
                              (tile.column + c) / packed::k_block_size);
    }
  }
}

Accepts accepts_fused_update(const NodeView& node, DType gradient) {
  if (Accepts a = accepts_dtype(gradient); !a) return a;
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
/// quarter of an L2 cache.
constexpr std::int64_t k_band_columns = 4096;
constexpr std::int64_t k_scratch_bytes =
    packed::k_block_size * k_band_columns * k_packed_value_bytes;

Accepts accepts_update(const NodeView& node, const Capabilities&) {
  return accepts_dtype(node.attrs().get<DType>("T"));
}

bool skips(const Args& args, bool guarded) { return guarded && !*args.in.back().as<bool>(); }

Prepared prepare_update(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const UpdateRule rule(l, node.node.op, node.attrs());
  const DType dtype = node.attrs().get<DType>("T");
  const Source source(l, dtype);
  const Sink sink(l, dtype);
  return launch([=](const Args& args) {
    if (skips(args, args.in.back().dtype == DType::boolean)) return;
    const auto scalars = rule.scalars(args, source);
    const TensorView& gradient = args.in[rule.ports.gradient];
    parallel_for(gradient.elements(), k_update_grain, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float scratch[k_max_resources + 1][k_run];
      float* state[k_max_resources];
      for (std::int64_t i = begin; i < end; i += k_run) {
        const std::int64_t n = std::min(k_run, end - i);
        const float* g = source.read(gradient.data, i, n, scratch[k_max_resources]);
        for (std::size_t s = 0; s < rule.ports.resources; ++s) {
          // Where nothing is widened the loop works on the variable in place.
          source.read(args.in[s].data, i, n, scratch[s]);
          state[s] = sink.buffer(args.in[s].data, i, scratch[s]);
        }
        rule.run(state, g, n, scalars);
        for (std::size_t s = 0; s < rule.ports.resources; ++s) {
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
      const FusedUpdate::Inputs inputs = update.inputs(args);
      parallel_for(elements, k_update_grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i += k_run) {
          update.elements(inputs, i, std::min(k_run, end - i), gradient_at(args, i));
        }
      });
    });
  }
  const std::int64_t width = gradient.shape[1];
  const std::int64_t bands = (gradient.shape[0] + packed::k_block_size - 1) / packed::k_block_size;
  // Each part of the bands has a scratch buffer. A part has at least `k_update_grain` elements:
  // waking a thread for fewer costs more than it saves.
  const std::int64_t parts = std::clamp<std::int64_t>(
      std::min(bands, gradient.shape.elements() / k_update_grain), 1, capabilities.threads);
  // At least 2^17 elements per piece, so that the atomic increment to claim one is negligible.
  constexpr std::int64_t k_piece = std::int64_t{1} << 17;
  const std::int64_t pieces =
      std::clamp(gradient.shape.elements() / k_piece, parts, std::max(parts, bands));
  return launch(
      [=](const Args& args) {
        if (skips(args, ports.guarded)) return;
        const FusedUpdate::Inputs inputs = update.inputs(args);
        parallel_tasks(pieces, parts, [&](std::int64_t piece, std::int64_t part) {
          for (std::int64_t i = bands * piece / pieces; i < bands * (piece + 1) / pieces; ++i) {
            for (std::int64_t column = 0; column < width; column += k_band_columns) {
              const FusedUpdate::Tile band{
                  i,
                  column,
                  std::min(width - column, k_band_columns),
                  gradient_at(args, i * packed::k_block_size * width + column),
                  width,
                  args.workspace + part * k_scratch_bytes};
              update.rows(inputs, band, 0, update.rows_of(band));
              update.pack(inputs, band);
            }
          }
          update.fence();
        });
      },
      static_cast<std::size_t>(parts * k_scratch_bytes));
}

}  // namespace

std::vector<Kernel> update_kernels() {
  std::vector<Kernel> kernels;
  for (const UpdateLoop& update : baseline_loops().updates) {
    kernels.push_back({update.op, "vector/update", accepts_update, prepare_update});
  }
  kernels.push_back({"FusedUpdate", "vector/update", accepts_fused, prepare_fused});
  return kernels;
}

}  // namespace halfstep::backend::cpu::vector

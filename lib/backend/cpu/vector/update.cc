// Optimizer steps in place, one pass over memory. Formulas at the ops' definitions. Arithmetic in
// float32, one rounding per stored tensor; the unrounded slot goes into the new weight. When the
// last input `ok` is false nothing is touched. A FusedUpdate also reads 16-bit gradients, unscales
// them and packs what it has written, with the same bits as the ops it stands for.
// Stored dtypes: float32, float16, bfloat16.
// The same bits for every instruction set and number of threads.

#include <algorithm>
#include <array>
#include <string_view>

#include "backend/cpu/packed/packing.h"
#include "backend/cpu/vector/convert.h"
#include "backend/cpu/vector/rows.h"
#include "core/error.h"
#include "core/parallel.h"
#include "graph/ops/fused_update.h"

namespace halfstep::backend::cpu::vector {
namespace {

constexpr std::int64_t k_grain = 16384;
/// Columns of which a FusedUpdate packs 32 rows at a time: the narrow copy of them is a quarter of
/// a second-level cache.
constexpr std::int64_t k_band_columns = 4096;
constexpr std::int64_t k_narrow_bytes = 2;
constexpr std::int64_t k_room_bytes = packed::k_block * k_band_columns * k_narrow_bytes;
constexpr int k_max_resources = 4;
constexpr std::size_t k_max_scalars = 8;

Accepts accepts_update(const NodeView& node, const Capabilities&) {
  const DType dtype = node.attrs().get<DType>("T");
  if (!is_computed(dtype)) return Accepts::no(fmt::format("no {} here", name(dtype)));
  return Accepts::yes();
}

/// The loop of an op over one instruction set's table.
struct Rule {
  const UpdateRow* row;
  Update loop;

  Rule(const Loops& l, std::string_view op, const graph::Attrs& attrs)
      : row(std::find_if(
            l.updates.begin(), l.updates.end(), [&](const UpdateRow& r) { return op == r.op; })),
        loop(row->flag != nullptr && attrs.get<bool>(row->flag) ? row->flagged : row->loop) {}

  std::size_t resources() const { return static_cast<std::size_t>(row->resources); }
  std::size_t gradient() const { return static_cast<std::size_t>(row->gradient); }

  /// The scalars among the first `inputs` inputs, of the dtype that `source` reads.
  std::array<float, k_max_scalars> scalars(const Args& args,
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
};

bool skips(const Args& args, bool guarded) { return guarded && !*args.in.back().as<bool>(); }

Prepared prepare_update(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const Rule rule(l, node.node.op, node.attrs());
  const DType dtype = node.attrs().get<DType>("T");
  const Source source(l, dtype);
  const Sink sink(l, dtype);
  return launch([=](const Args& args) {
    const bool guarded = args.in.back().dtype == DType::boolean;
    if (skips(args, guarded)) return;
    const auto scalars = rule.scalars(args, args.in.size() - (guarded ? 1 : 0), source);
    const TensorView& gradient = args.in[rule.gradient()];
    parallel_for(gradient.elements(), k_grain, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float rooms[k_max_resources + 1][k_run];
      float* state[k_max_resources];
      for (std::int64_t i = begin; i < end; i += k_run) {
        const std::int64_t n = std::min(k_run, end - i);
        const float* g = source.read(gradient.data, i, n, rooms[k_max_resources]);
        for (std::size_t s = 0; s < rule.resources(); ++s) {
          // Where nothing is widened the loop works on the variable itself.
          source.read(args.in[s].data, i, n, rooms[s]);
          state[s] = sink.place(args.in[s].data, i, rooms[s]);
        }
        rule.loop(state, g, n, scalars.data());
        for (std::size_t s = 0; s < rule.resources(); ++s) {
          sink.store(args.in[s].data, i, n, state[s]);
        }
      }
    });
  });
}

/// FusedUpdate: float32 variables, a gradient of any computed dtype.
class FusedUpdate {
 public:
  FusedUpdate(const NodeView& node, const Capabilities& capabilities)
      : loops_(&loops(capabilities.isa)),
        ports_(graph::ops::fused_update_ports(node.node)),
        rule_(*loops_, node.attrs().get<std::string>("rule"), node.attrs()),
        gradient_(*loops_, node.input(ports_.rule.gradient).dtype),
        shape_(node.input(ports_.rule.gradient).shape),
        blocks_(&packed::blocks(capabilities.isa)) {
    for (std::size_t i = ports_.packed_begin; i < ports_.packed_end; ++i) {
      const graph::Attrs& attrs = node.graph.node(node.node.inputs[i].node).attrs;
      const auto dtype = attrs.get<DType>("dtype");
      packings_.push_back(packed::Packing::of_update({dtype, shape_}, attrs, *blocks_));
      narrow_ = narrow_loop(*loops_, dtype);
    }
    if (!packings_.empty()) {
      parts_ = std::clamp<std::int64_t>(packings_[0].down(), 1, capabilities.threads);
    }
  }

  void operator()(const Args& args) const {
    if (skips(args, ports_.guarded)) return;
    const Step step{args,
                    rule_.scalars(args, ports_.rule.inputs, Source()),
                    *args.in[ports_.unscale].as<float>()};
    if (packings_.empty()) {
      parallel_for(shape_.elements(), k_grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; i += k_run) {
          update(step, i, std::min(k_run, end - i));
        }
      });
      return;
    }
    const std::int64_t bands = packings_[0].down();
    parallel_for(parts_, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) {
        for (std::int64_t i = bands * part / parts_; i < bands * (part + 1) / parts_; ++i) {
          band(step, i, args.workspace + part * k_room_bytes);
        }
      }
      blocks_->fence();
    });
  }

  std::size_t workspace_bytes() const {
    return packings_.empty() ? 0 : static_cast<std::size_t>(parts_ * k_room_bytes);
  }

 private:
  struct Step {
    const Args& args;
    std::array<float, k_max_scalars> scalars;
    float unscale;
  };

  /// Elements [i, i + n) of the variable, n <= k_run.
  void update(const Step& step, std::int64_t i, std::int64_t n) const {
    alignas(64) float room[k_run];
    const float* g = gradient_.read(step.args.in[rule_.gradient()].data, i, n, room);
    if (step.unscale != 1) {
      loops_->scale(room, g, step.unscale, n);
      g = room;
    }
    float* state[k_max_resources];
    for (std::size_t s = 0; s < rule_.resources(); ++s) state[s] = step.args.in[s].as<float>() + i;
    rule_.loop(state, g, n, step.scalars.data());
  }

  /// Rows [32 i, 32 i + 32): updated in the order of memory, with a narrow copy in `room`, which is
  /// packed while it is in a cache.
  void band(const Step& step, std::int64_t i, std::byte* room) const {
    const std::int64_t first = i * packed::k_block;
    const std::int64_t rows = std::min(packed::k_block, shape_[0] - first);
    for (std::int64_t column = 0; column < shape_[1]; column += k_band_columns) {
      const std::int64_t columns = std::min(shape_[1] - column, k_band_columns);
      // Whole rows follow one another.
      const bool whole = columns == shape_[1];
      const std::int64_t run = whole ? rows * columns : columns;
      for (std::int64_t row = 0; row < (whole ? 1 : rows); ++row) {
        for (std::int64_t c = 0; c < run; c += k_run) {
          const std::int64_t n = std::min(k_run, run - c);
          const std::int64_t at = (first + row) * shape_[1] + column + c;
          update(step, at, n);
          narrow_(room + (row * columns + c) * k_narrow_bytes, step.args.in[0].as<float>() + at, n);
        }
      }
      for (std::size_t p = 0; p < packings_.size(); ++p) {
        auto* to = step.args.in[ports_.packed_begin + p].as<std::byte>();
        for (std::int64_t c = 0; c < columns; c += packed::k_block) {
          packings_[p].pack_block(
              {room + c * k_narrow_bytes, columns, rows, std::min(packed::k_block, columns - c)},
              to,
              i,
              (column + c) / packed::k_block);
        }
      }
    }
  }

  const Loops* loops_;
  graph::ops::FusedUpdatePorts ports_;
  Rule rule_;
  Source gradient_;
  Shape shape_;
  const packed::Blocks* blocks_;
  std::vector<packed::Packing> packings_;
  Narrow narrow_ = nullptr;
  std::int64_t parts_ = 1;  ///< of the bands, each with a room of its own
};

Accepts accepts_fused_update(const NodeView& node, const Capabilities&) {
  const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node.node);
  const DType dtype = node.input(ports.rule.gradient).dtype;
  if (!is_computed(dtype)) return Accepts::no(fmt::format("no {} here", name(dtype)));
  const auto packed_dtype = [&](std::size_t i) {
    return node.graph.node(node.node.inputs[i].node).attrs.get<DType>("dtype");
  };
  for (std::size_t i = ports.packed_begin; i < ports.packed_end; ++i) {
    if (packed_dtype(i) != packed_dtype(ports.packed_begin)) {
      return Accepts::no("packed in two dtypes");
    }
  }
  return Accepts::yes();
}

Prepared prepare_fused_update(const NodeView& node, const Capabilities& capabilities) {
  FusedUpdate update(node, capabilities);
  const std::size_t workspace_bytes = update.workspace_bytes();
  return launch(std::move(update), workspace_bytes);
}

}  // namespace

std::vector<Kernel> update_kernels() {
  std::vector<Kernel> rows;
  for (const UpdateRow& row : baseline_loops().updates) {
    rows.push_back({row.op, "vector/update", accepts_update, prepare_update});
  }
  rows.push_back({"FusedUpdate", "vector/update", accepts_fused_update, prepare_fused_update});
  return rows;
}

}  // namespace halfstep::backend::cpu::vector

// Reductions over adjacent axes: x [outer, rows, columns] -> [outer, columns]. Stored dtypes:
// float32, float16, bfloat16. Sums of 16-lane runs or of up to 128 rows in float32, larger ones in
// double; one rounding on store. Max and Min propagate NaN. Bit-identical for every instruction set
// and number of threads.

#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>

#include "backend/cpu/vector/convert.h"
#include "backend/cpu/vector/kernels.h"
#include "backend/cpu/vector/row_blocks.h"
#include "core/error.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu::vector {
namespace {

/// x as [outer, rows, columns], reduced over rows.
struct Extents {
  std::int64_t outer = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

/// Nothing if a retained axis is between reduced axes, or the axes are not constant.
std::optional<Extents> extents(const NodeView& node) {
  const Shape& shape = node.input(0).shape;
  if (node.node.is(graph::ops::k_l2_loss)) return Extents{1, shape.elements(), 1};
  if (node.node.is(graph::ops::k_bias_add_grad, graph::ops::k_cast_bias_add_grad))
    return Extents{1, shape.elements() / shape.back(), shape.back()};
  const auto axes = node.constant(1);
  if (!axes) return std::nullopt;
  std::array<bool, Shape::k_max_rank> reduced{};
  for (const std::int64_t axis : *axes) reduced[axis_of(axis, shape.rank())] = true;
  Extents e;
  enum { before, within, after } position = before;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    if (reduced[i]) {
      if (position == after) return std::nullopt;
      position = within;
      e.rows *= shape[i];
    } else {
      if (position == within) position = after;
      (position == before ? e.outer : e.columns) *= shape[i];
    }
  }
  return e;
}

Accepts accepts_reduce(const NodeView& node, const Capabilities&) {
  const graph::TensorType& x = node.input(0);
  if (Accepts a = accepts_dtype(x.dtype); !a) return a;
  if (x.shape.elements() == 0) return Accepts::no("empty");
  if (node.node.is(graph::ops::k_bias_add_grad, graph::ops::k_cast_bias_add_grad) &&
      node.attrs().get<std::string>("data_format") != "NHWC") {
    return Accepts::no("channels are not the last axis");
  }
  if (!extents(node)) return Accepts::no("the reduced axes are not adjacent");
  return Accepts::yes();
}

/// Converts a reduced value and stores it.
struct StoreResult {
  double divisor = 1;
  Sink sink;

  void operator()(double value, void* y, std::int64_t i) const {
    float scratch = 0;
    *sink.buffer(y, i, &scratch) = static_cast<float>(value / divisor);
    sink.store(y, i, 1, &scratch);
  }
};

constexpr auto k_max_of = [](double a, double x) { return x > a || x != x ? x : a; };
constexpr auto k_min_of = [](double a, double x) { return x < a || x != x ? x : a; };

/// Reduces rows to columns.
template <class Combine>
Prepared reduce_columns(const Extents& e,
                        const Reduction& reduction,
                        const Source& source,
                        const StoreResult& store,
                        Combine combine) {
  const RowBlocks blocks(e.outer, e.rows, e.columns);
  return launch(
      [=](const Args& args) {
        auto* partial = static_cast<double*>(static_cast<void*>(args.workspace));
        const auto accumulate = [&](float** acc, auto at, auto, auto rows, auto columns) {
          alignas(64) float scratch[k_run];
          reduction.rows(
              acc[0], source.read(args.in[0].data, at, rows * columns, scratch), rows, columns);
        };
        blocks.reduce<1>(partial, reduction.identity, accumulate, combine);
        parallel_for_each(e.outer * e.columns, 4096, [&](std::int64_t i) {
          store(blocks.combined(partial, 0, i / e.columns, i % e.columns, combine),
                args.out[0].data,
                i);
        });
      },
      blocks.partials(1) * sizeof(double));
}

/// Reduces contiguous runs.
template <class Combine>
Prepared reduce_runs(const Extents& e,
                     const Reduction& reduction,
                     const Source& source,
                     const StoreResult& store,
                     Combine combine) {
  constexpr std::int64_t k_reduce_block = 64 * k_run;
  const std::int64_t blocks = (e.rows + k_reduce_block - 1) / k_reduce_block;
  return launch(
      [=](const Args& args) {
        auto* partial = static_cast<double*>(static_cast<void*>(args.workspace));
        const std::int64_t grain =
            std::max<std::int64_t>(1, 16384 / std::min(e.rows, k_reduce_block));
        parallel_for(e.outer * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
          alignas(64) float scratch[k_run];
          for (std::int64_t unit = begin; unit < end; ++unit) {
            const std::int64_t first = unit / blocks * e.rows;
            const std::int64_t stop = std::min(e.rows, (unit % blocks + 1) * k_reduce_block);
            double value = static_cast<double>(reduction.identity);
            for (std::int64_t i = unit % blocks * k_reduce_block; i < stop; i += k_run) {
              const std::int64_t n = std::min(k_run, stop - i);
              const float* x = source.read(args.in[0].data, first + i, n, scratch);
              value = combine(value, static_cast<double>(reduction.run(x, n)));
            }
            partial[unit] = value;
          }
        });
        for (std::int64_t o = 0; o < e.outer; ++o) {
          double value = partial[o * blocks];
          for (std::int64_t b = 1; b < blocks; ++b) value = combine(value, partial[o * blocks + b]);
          store(value, args.out[0].data, o);
        }
      },
      static_cast<std::size_t>(e.outer * blocks) * sizeof(double));
}

Prepared prepare_reduce(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const std::string_view op = node.node.op;
  const bool is_sum = node.node.is(
      graph::ops::k_mean, graph::ops::k_bias_add_grad, graph::ops::k_cast_bias_add_grad);
  const std::string_view loop = is_sum ? "Sum" : op;
  const Reduction reduction = *find_entry(l.reductions, loop);
  const Extents e = *extents(node);
  StoreResult store{.sink = Sink(l, node.output().dtype)};
  if (op == graph::ops::k_mean) store.divisor = static_cast<double>(e.rows);
  if (op == graph::ops::k_l2_loss) store.divisor = 2;
  const Source source(l, node.input(0).dtype);
  const auto prepare = [&](auto combine) {
    return e.columns == 1 ? reduce_runs(e, reduction, source, store, combine)
                          : reduce_columns(e, reduction, source, store, combine);
  };
  if (op == graph::ops::k_max) return prepare(k_max_of);
  if (op == graph::ops::k_min) return prepare(k_min_of);
  return prepare(k_plus);
}

Accepts accepts_all(const NodeView& node, const Capabilities&) {
  const auto e = extents(node);
  if (e && e->outer == 1 && e->columns == 1) return Accepts::yes();
  return Accepts::no("not over all axes");
}

Prepared prepare_all(const NodeView& node, const Capabilities&) {
  return launch([n = node.input(0).shape.elements()](const Args& args) {
    const auto* x = args.in[0].as<unsigned char>();
    std::atomic<bool> all{true};
    parallel_for(n, 65536, [&](std::int64_t begin, std::int64_t end) {
      if (std::memchr(x + begin, 0, static_cast<std::size_t>(end - begin)) != nullptr) all = false;
    });
    *args.out[0].as<bool>() = all;
  });
}

Accepts accepts_arg(const NodeView& node, const Capabilities& capabilities) {
  const Accepts accepts = accepts_reduce(node, capabilities);
  if (accepts && extents(node)->columns > 1) return Accepts::no("not over the last axes");
  return accepts;
}

/// The first index of the maximum or minimum of each run, or of its first NaN. No branch depends on
/// a value, since such branches cannot be predicted.
template <bool is_max>
Prepared prepare_arg(const NodeView& node, const Capabilities& capabilities) {
  const Extents e = *extents(node);
  const Source source(loops(capabilities.isa), node.input(0).dtype);
  const bool is_int64 = node.output().dtype == DType::int64;
  return launch([=](const Args& args) {
    parallel_for(e.outer, 16384 / e.rows + 1, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float scratch[k_run];
      for (std::int64_t run = begin; run < end; ++run) {
        std::int64_t index = 0;
        float best = is_max ? -INFINITY : INFINITY;
        for (std::int64_t at = 0; at < e.rows; at += k_run) {
          const std::int64_t n = std::min(k_run, e.rows - at);
          const float* x = source.read(args.in[0].data, run * e.rows + at, n, scratch);
          for (std::int64_t i = 0; i < n; ++i) {
            const bool beats = (is_max ? !(x[i] <= best) : !(x[i] >= best)) & (best == best);
            best = beats ? x[i] : best;
            index = beats ? at + i : index;
          }
        }
        if (is_int64) {
          args.out[0].as<std::int64_t>()[run] = index;
        } else {
          args.out[0].as<std::int32_t>()[run] = static_cast<std::int32_t>(index);
        }
      }
    });
  });
}

}  // namespace

std::vector<Kernel> reduce_kernels() {
  std::vector<Kernel> kernels{{"All", "vector/all", accepts_all, prepare_all},
                              {"ArgMax", "vector/arg_max", accepts_arg, prepare_arg<true>},
                              {"ArgMin", "vector/arg_min", accepts_arg, prepare_arg<false>}};
  for (const std::string_view op :
       {"BiasAddGrad", "CastBiasAddGrad", "L2Loss", "Max", "Mean", "Min", "Sum"}) {
    kernels.push_back({op, "vector/reduce", accepts_reduce, prepare_reduce});
  }
  return kernels;
}

}  // namespace halfstep::backend::cpu::vector

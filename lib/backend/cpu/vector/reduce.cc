// Reductions over adjacent axes: x [outer, rows, columns] -> [outer, columns]. Stored dtypes:
// float32, float16, bfloat16. Sums of 16-lane runs or of up to 128 rows in float32, beyond that in
// double; one rounding on store. Max and Min propagate NaN. Bit-identical for every instruction set
// and number of threads.

#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>

#include "backend/cpu/vector/convert.h"
#include "backend/cpu/vector/row_blocks.h"
#include "backend/cpu/vector/rows.h"
#include "core/error.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu::vector {
namespace {

/// x seen as [outer, rows, columns], reduced over rows.
struct Extents {
  std::int64_t outer = 1;
  std::int64_t rows = 1;
  std::int64_t columns = 1;
};

/// Nothing when kept axes are between reduced ones, or the axes are not constant.
std::optional<Extents> extents(const NodeView& node) {
  const Shape& shape = node.input(0).shape;
  if (node.node.is(graph::ops::k_l2_loss)) return Extents{1, shape.elements(), 1};
  if (node.node.is(graph::ops::k_bias_add_grad, graph::ops::k_cast_bias_add_grad))
    return Extents{1, shape.elements() / shape.back(), shape.back()};
  const auto axes = node.constant(1);
  if (!axes) return std::nullopt;
  std::array<bool, Shape::k_max_rank> reduced{};
  for (std::int64_t axis : *axes) {
    const auto rank = static_cast<std::int64_t>(shape.rank());
    reduced[static_cast<std::size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  Extents e;
  enum { before, within, after } place = before;
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    if (reduced[i]) {
      if (place == after) return std::nullopt;
      place = within;
      e.rows *= shape[i];
    } else {
      if (place == within) place = after;
      (place == before ? e.outer : e.columns) *= shape[i];
    }
  }
  return e;
}

Accepts accepts_reduce(const NodeView& node, const Capabilities&) {
  const graph::TensorType& x = node.input(0);
  if (!is_computed(x.dtype)) return Accepts::no(fmt::format("no {} here", name(x.dtype)));
  if (x.shape.elements() == 0) return Accepts::no("empty");
  if (node.node.is(graph::ops::k_bias_add_grad, graph::ops::k_cast_bias_add_grad) &&
      node.attrs().get<std::string>("data_format") != "NHWC") {
    return Accepts::no("channels are not the last axis");
  }
  if (!extents(node)) return Accepts::no("the reduced axes are not adjacent");
  return Accepts::yes();
}

/// The conversion of the reduced value to the result.
struct Finish {
  double divisor = 1;
  Sink sink;

  void operator()(double value, void* y, std::int64_t i) const {
    float scratch = 0;
    *sink.place(y, i, &scratch) = static_cast<float>(value / divisor);
    sink.store(y, i, 1, &scratch);
  }
};

constexpr auto k_larger = [](double a, double x) { return x > a || x != x ? x : a; };
constexpr auto k_smaller = [](double a, double x) { return x < a || x != x ? x : a; };

/// Reduces rows to columns.
template <class Join>
Prepared fold_columns(
    const Extents& e, const FoldRow& fold, const Source& source, const Finish& finish, Join join) {
  const RowBlocks blocks(e.outer, e.rows, e.columns);
  return launch(
      [=](const Args& args) {
        auto* partial = static_cast<double*>(static_cast<void*>(args.workspace));
        const auto leaf = [&](float** acc, auto at, auto, auto rows, auto columns) {
          alignas(64) float scratch[k_run];
          fold.rows(
              acc[0], source.read(args.in[0].data, at, rows * columns, scratch), rows, columns);
        };
        blocks.fold<1>(partial, fold.start, leaf, join);
        parallel_for(e.outer * e.columns, 4096, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            finish(
                blocks.joined(partial, 0, i / e.columns, i % e.columns, join), args.out[0].data, i);
          }
        });
      },
      blocks.partials(1) * sizeof(double));
}

/// Reduces contiguous runs.
template <class Join>
Prepared fold_runs(
    const Extents& e, const FoldRow& fold, const Source& source, const Finish& finish, Join join) {
  constexpr std::int64_t k_fold_block = 64 * k_run;
  const std::int64_t blocks = (e.rows + k_fold_block - 1) / k_fold_block;
  return launch(
      [=](const Args& args) {
        auto* partial = static_cast<double*>(static_cast<void*>(args.workspace));
        const std::int64_t grain =
            std::max<std::int64_t>(1, 16384 / std::min(e.rows, k_fold_block));
        parallel_for(e.outer * blocks, grain, [&](std::int64_t begin, std::int64_t end) {
          alignas(64) float scratch[k_run];
          for (std::int64_t unit = begin; unit < end; ++unit) {
            const std::int64_t first = unit / blocks * e.rows;
            const std::int64_t stop = std::min(e.rows, (unit % blocks + 1) * k_fold_block);
            double value = static_cast<double>(fold.start);
            for (std::int64_t i = unit % blocks * k_fold_block; i < stop; i += k_run) {
              const std::int64_t n = std::min(k_run, stop - i);
              const float* x = source.read(args.in[0].data, first + i, n, scratch);
              value = join(value, static_cast<double>(fold.run(x, n)));
            }
            partial[unit] = value;
          }
        });
        for (std::int64_t o = 0; o < e.outer; ++o) {
          double value = partial[o * blocks];
          for (std::int64_t b = 1; b < blocks; ++b) value = join(value, partial[o * blocks + b]);
          finish(value, args.out[0].data, o);
        }
      },
      static_cast<std::size_t>(e.outer * blocks) * sizeof(double));
}

Prepared prepare_reduce(const NodeView& node, const Capabilities& capabilities) {
  const Loops& l = loops(capabilities.isa);
  const std::string_view op = node.node.op;
  const bool sums = node.node.is(
      graph::ops::k_mean, graph::ops::k_bias_add_grad, graph::ops::k_cast_bias_add_grad);
  const std::string_view loop = sums ? "Sum" : op;
  const FoldRow fold = *std::find_if(
      l.folds.begin(), l.folds.end(), [&](const FoldRow& row) { return loop == row.op; });
  const Extents e = *extents(node);
  Finish finish{.sink = Sink(l, node.output().dtype)};
  if (op == graph::ops::k_mean) finish.divisor = static_cast<double>(e.rows);
  if (op == graph::ops::k_l2_loss) finish.divisor = 2;
  const Source source(l, node.input(0).dtype);
  const auto prepare = [&](auto join) {
    return e.columns == 1 ? fold_runs(e, fold, source, finish, join)
                          : fold_columns(e, fold, source, finish, join);
  };
  if (op == graph::ops::k_max) return prepare(k_larger);
  if (op == graph::ops::k_min) return prepare(k_smaller);
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

/// The first index of the largest or smallest value of each run; the first NaN counts as that. No
/// branch depends on a value: they cannot be predicted.
template <bool largest>
Prepared prepare_arg(const NodeView& node, const Capabilities& capabilities) {
  const Extents e = *extents(node);
  const Source source(loops(capabilities.isa), node.input(0).dtype);
  const bool wide = node.output().dtype == DType::int64;
  return launch([=](const Args& args) {
    parallel_for(e.outer, 16384 / e.rows + 1, [&](std::int64_t begin, std::int64_t end) {
      alignas(64) float scratch[k_run];
      for (std::int64_t run = begin; run < end; ++run) {
        std::int64_t index = 0;
        float best = largest ? -INFINITY : INFINITY;
        for (std::int64_t at = 0; at < e.rows; at += k_run) {
          const std::int64_t n = std::min(k_run, e.rows - at);
          const float* x = source.read(args.in[0].data, run * e.rows + at, n, scratch);
          for (std::int64_t i = 0; i < n; ++i) {
            const bool beats = (largest ? !(x[i] <= best) : !(x[i] >= best)) & (best == best);
            best = beats ? x[i] : best;
            index = beats ? at + i : index;
          }
        }
        if (wide) {
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
  std::vector<Kernel> rows{{"All", "vector/all", accepts_all, prepare_all},
                           {"ArgMax", "vector/arg_max", accepts_arg, prepare_arg<true>},
                           {"ArgMin", "vector/arg_min", accepts_arg, prepare_arg<false>}};
  for (const std::string_view op :
       {"BiasAddGrad", "CastBiasAddGrad", "L2Loss", "Max", "Mean", "Min", "Sum"}) {
    rows.push_back({op, "vector/reduce", accepts_reduce, prepare_reduce});
  }
  return rows;
}

}  // namespace halfstep::backend::cpu::vector

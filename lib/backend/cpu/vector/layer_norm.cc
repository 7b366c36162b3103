// Layer normalization of the rows of x [rows, columns], in two passes over a row:
//   y = (x - m) * r * gamma + beta, r = 1 / sqrt(v + epsilon)
//   dbeta = sum dy, dgamma = sum dy * (x - m) * r over rows
//   dx = r * (dy * gamma - sum(dy * gamma) / n - (x - m) * r^2 * sum(dy * gamma * (x - m)) / n),
// with sums over the n columns of a row. Sums of a run are float32, sums of runs are double.

#include <algorithm>
#include <cmath>
#include <string_view>

#include "backend/cpu/vector/convert.h"
#include "backend/cpu/vector/kernels.h"
#include "backend/cpu/vector/row_blocks.h"

namespace halfstep::backend::cpu::vector {
namespace {

/// Rows of x and dy, which are read run by run.
struct LayerNorm : TypedLoops {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  bool one_run;  ///< whether a row is one run, for which there are loops over full rows

  LayerNorm(const NodeView& node, const Capabilities& capabilities)
      : TypedLoops(capabilities.isa, node.output().dtype),
        rows(node.output().shape.elements() / node.output().shape.back()),
        columns(node.output().shape.back()),
        one_run(columns <= k_run) {}

  std::byte* row_of(const TensorView& x, std::int64_t row) const {
    return x.as<std::byte>() + row * columns * source.size;
  }
  /// Calls body(begin, end) for ranges of rows, in parallel.
  template <class F>
  void for_rows(const F& body) const {
    parallel_for(rows, std::max<std::int64_t>(1, 16384 / columns), body);
  }
  /// Calls body(row) for all rows, in parallel.
  template <class F>
  void for_each_row(const F& body) const {
    for_rows([&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) body(row);
    });
  }
  /// The sum of body(first column, columns) over the runs of a row.
  template <class F>
  double sum_of_runs(const F& body) const {
    double sum = 0;
    for (std::int64_t c = 0; c < columns; c += k_run) sum += body(c, std::min(k_run, columns - c));
    return sum;
  }
};

Prepared prepare_layer_norm(const NodeView& node, const Capabilities& capabilities) {
  const LayerNorm p(node, capabilities);
  const auto sum = find_entry(p.loops->reductions, "Sum")->run;
  return launch([p, sum, epsilon = node.attrs().get<double>("epsilon")](const Args& a) {
    if (p.one_run) {
      p.for_rows([&](std::int64_t begin, std::int64_t end) {
        p.loops->layer_norm_rows[p.index()]({p.row_of(a.in[0], begin),
                                             a.in[1].as<float>(),
                                             a.in[2].as<float>(),
                                             epsilon,
                                             p.row_of(a.out[0], begin),
                                             a.out[1].as<float>() + begin,
                                             a.out[2].as<float>() + begin},
                                            end - begin,
                                            p.columns);
      });
      return;
    }
    const auto n = static_cast<double>(p.columns);
    p.for_each_row([&](std::int64_t row) {
      alignas(64) float scratch[2][k_run];
      const auto read = [&](std::int64_t c, std::int64_t count) {
        return p.source.read(a.in[0].data, row * p.columns + c, count, scratch[0]);
      };
      const auto mean = static_cast<float>(p.sum_of_runs([&](auto c, auto count) {
        return static_cast<double>(sum(read(c, count), count));
      }) / n);
      const double squares = p.sum_of_runs([&](auto c, auto count) {
        return static_cast<double>(p.loops->squared_distances(read(c, count), mean, count));
      });
      const auto inverse = static_cast<float>(1 / std::sqrt(squares / n + epsilon));
      for (std::int64_t c = 0; c < p.columns; c += k_run) {
        const std::int64_t count = std::min(k_run, p.columns - c);
        const std::int64_t at = row * p.columns + c;
        const float* x = read(c, count);
        const NormRow here{a.in[1].as<float>() + c, a.in[2].as<float>() + c, mean, inverse};
        p.loops->normalize_row(p.sink.buffer(a.out[0].data, at, scratch[1]), x, here, count);
        p.sink.store(a.out[0].data, at, count, scratch[1]);
      }
      a.out[1].as<float>()[row] = mean;
      a.out[2].as<float>()[row] = inverse;
    });
  });
}

Prepared prepare_layer_norm_grad(const NodeView& node, const Capabilities& capabilities) {
  const LayerNorm p(node, capabilities);
  const RowBlocks blocks(1, p.rows, p.columns);
  const std::size_t row_bytes =
      (2 * static_cast<std::size_t>(p.rows) * sizeof(float) + 63) / 64 * 64;
  return launch(
      [=](const Args& a) {
        auto* constant = static_cast<float*>(static_cast<void*>(a.workspace));
        float* slope = constant + p.rows;
        auto* partial = static_cast<double*>(static_cast<void*>(a.workspace + row_bytes));
        const float* gamma = a.in[2].as<float>();
        const float* mean = a.in[3].as<float>();
        const float* inverse = a.in[4].as<float>();
        if (!p.one_run) {
          p.for_each_row([&](std::int64_t row) {
            alignas(64) float scratch[2][k_run];
            double product = 0;
            const double sum = p.sum_of_runs([&](auto c, auto count) {
              const std::int64_t at = row * p.columns + c;
              const float* dy = p.source.read(a.in[0].data, at, count, scratch[0]);
              const float* x = p.source.read(a.in[1].data, at, count, scratch[1]);
              float sums[2];
              p.loops->row_comoments(sums, dy, x, gamma + c, mean[row], count);
              product += static_cast<double>(sums[1]);
              return static_cast<double>(sums[0]);
            });
            const double r = static_cast<double>(inverse[row]);
            constant[row] = static_cast<float>(sum / static_cast<double>(p.columns));
            slope[row] = static_cast<float>(product * r * r / static_cast<double>(p.columns));
          });
        }
        const auto accumulate = [&](float** acc, auto at, auto column, auto rows, auto columns) {
          if (p.one_run) {
            const std::int64_t row = at / p.columns;
            p.loops->layer_norm_grad_rows[p.index()]({p.row_of(a.in[0], row),
                                                      p.row_of(a.in[1], row),
                                                      gamma,
                                                      mean + row,
                                                      inverse + row,
                                                      p.row_of(a.out[0], row),
                                                      acc[0],
                                                      acc[1]},
                                                     rows,
                                                     p.columns);
            return;
          }
          alignas(64) float scratch[3][k_run];
          for (std::int64_t r = 0; r < rows; ++r, at += columns) {
            const std::int64_t row = at / p.columns;
            const float* dy = p.source.read(a.in[0].data, at, columns, scratch[0]);
            const float* x = p.source.read(a.in[1].data, at, columns, scratch[1]);
            const NormRow here{
                gamma + column, nullptr, mean[row], inverse[row], constant[row], slope[row]};
            float* dx = p.sink.buffer(a.out[0].data, at, scratch[2]);
            float* const y[] = {dx, acc[0], acc[1]};
            p.loops->normalize_row_grad(y, dy, x, here, columns);
            p.sink.store(a.out[0].data, at, columns, scratch[2]);
          }
        };
        blocks.reduce<2>(partial, 0.0F, accumulate, k_plus);
        for (std::int64_t c = 0; c < p.columns; ++c) {
          for (const int s : {0, 1}) {
            a.out[1 + static_cast<std::size_t>(s)].as<float>()[c] =
                static_cast<float>(blocks.combined(partial, s, 0, c, k_plus));
          }
        }
      },
      row_bytes + blocks.partials(2) * sizeof(double));
}

Accepts accepts_layer_norm(const NodeView& node, const Capabilities&) {
  const DType x = node.output().dtype;
  const DType moments = node.output(1).dtype;
  if (Accepts a = accepts_dtype(x); !a) return a;
  if (moments != DType::float32) return Accepts::no(fmt::format("moments in {}", name(moments)));
  if (node.output().shape.elements() == 0) return Accepts::no("empty");
  if (node.attrs().get<std::int64_t>("num_addends") > 0) return Accepts::no("addends");
  return Accepts::yes();
}

}  // namespace

std::vector<Kernel> layer_norm_kernels() {
  return {
      {"LayerNorm", "vector/layer_norm", accepts_layer_norm, prepare_layer_norm, 0b1},
      {"LayerNormGrad", "vector/layer_norm", accepts_layer_norm, prepare_layer_norm_grad, 0b11},
  };
}

}  // namespace halfstep::backend::cpu::vector

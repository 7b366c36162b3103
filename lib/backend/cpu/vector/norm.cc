// Batch normalization over the rows of x [rows, channels]:
//   g = scale / sqrt(v + epsilon)
//   y = (x - m) * g + offset
//   doffset = sum dy, dscale = sum dy * (x - m) / sqrt(v + epsilon)
//   training:  dx = g * (dy - doffset / rows - (x - m) * dscale / (rows * sqrt(v + epsilon)))
//   inference: dx = g * dy
// Fused: z = max(y, 0) or max(y + side input, 0), of the rounded y; and the gradient of the former,
// where dy is taken as 0 unless the rounded y is above 0. y is recomputed for that with the same
// arithmetic, hence bit-identically. Statistics in one pass over distances from a sample's mean,
// which avoids cancellation: up to 128 rows in float32, beyond that in double. Stored dtypes: x, y
// and their gradients float32, float16 or bfloat16; all others float32. Bit-identical for every
// instruction set and number of threads.
//
// Layer normalization of the rows of x [rows, columns], in two passes over a row:
//   y = (x - m) * r * gamma + beta, r = 1 / sqrt(v + epsilon)
//   dbeta = sum dy, dgamma = sum dy * (x - m) * r over rows
//   dx = r * (dy * gamma - sum(dy * gamma) / n - (x - m) * r^2 * sum(dy * gamma * (x - m)) / n),
// sums over the n columns of a row. Sums of a run of a row are float32, those of runs double.

#include <algorithm>
#include <cmath>
#include <string_view>

#include "backend/cpu/vector/convert.h"
#include "backend/cpu/vector/row_blocks.h"
#include "backend/cpu/vector/rows.h"
#include "core/error.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu::vector {
namespace {

struct Norm {
  std::int64_t rows = 1;
  std::int64_t channels = 1;
  double epsilon = 0;
  double factor = 1;
  bool training = true;
  bool relu = false;
  bool side = false;  ///< input 5 is added
  DType stored = DType::float32;
  Source source;
  Sink sink;
  const Loops* loops = nullptr;

  Norm(const NodeView& node, const Shape& x, const Capabilities& capabilities)
      : rows(x.elements() / x.back()),
        channels(x.back()),
        epsilon(node.attrs().get<double>("epsilon")),
        factor(node.attrs().get_or<double>("exponential_avg_factor", 1.0)),
        training(node.attrs().get<bool>("is_training")),
        relu(node.node.is(graph::ops::k_batch_norm_relu_grad) ||
             node.attrs().get_or<std::string>("activation_mode", "Identity") == "Relu"),
        side(node.attrs().get_or<std::int64_t>("num_side_inputs", 0) > 0),
        stored(node.output().dtype),
        source(vector::loops(capabilities.isa), node.output().dtype),
        sink(vector::loops(capabilities.isa), node.output().dtype),
        loops(&vector::loops(capabilities.isa)) {}

  /// Half the smallest positive number of the stored dtype, the largest value that rounds to 0.
  float least() const {
    if (stored == DType::float16) return 0x1p-25F;
    return stored == DType::bfloat16 ? 0x1p-134F : 0.0F;
  }
};

/// Workspace: `vectors` vectors of channels in float32, followed by the partial sums.
struct Workspace {
  float* vectors;
  double* partial;

  Workspace(const Args& args, const Norm& p, int count)
      : vectors(static_cast<float*>(static_cast<void*>(args.workspace))),
        partial(static_cast<double*>(static_cast<void*>(args.workspace + bytes(p, count)))) {}
  static std::size_t bytes(const Norm& p, int count) {
    return (static_cast<std::size_t>(count * p.channels) * sizeof(float) + 63) / 64 * 64;
  }
};

/// Calls body(first element, first channel, rows, channels) for pieces of at most k_run elements.
template <class F>
void for_each_piece(const Norm& p, const F& body) {
  const std::int64_t per_run = std::max<std::int64_t>(1, k_run / p.channels);
  parallel_for(p.rows, std::max<std::int64_t>(1, 16384 / p.channels), [&](auto begin, auto end) {
    for (std::int64_t row = begin; row < end; row += per_run) {
      const std::int64_t count = std::min(per_run, end - row);
      for (std::int64_t c = 0; c < p.channels; c += k_run) {
        body(row * p.channels + c, c, count, std::min(k_run, p.channels - c));
      }
    }
  });
}

/// The mean of up to 32 rows spread over x, an estimate of the mean of all.
void sample_mean(const Norm& p, const void* x, float* mean) {
  const std::int64_t samples = std::min<std::int64_t>(32, p.rows);
  alignas(64) float scratch[k_run];
  std::fill_n(mean, p.channels, 0.0F);
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t c = 0; c < p.channels; c += k_run) {
      const std::int64_t n = std::min(k_run, p.channels - c);
      const float* row = p.source.read(x, s * p.rows / samples * p.channels + c, n, scratch);
      p.loops->add_scaled(mean + c, row, 1.0F / static_cast<float>(samples), n);
    }
  }
}

/// Writes mean, biased variance and the outputs for the moving averages.
void statistics(
    const Norm& p, const RowBlocks& blocks, const Args& a, float* shift, double* partial) {
  sample_mean(p, a.in[0].data, shift);
  const auto leaf = [&](float** acc, auto at, auto column, auto rows, auto columns) {
    alignas(64) float scratch[k_run];
    const float* x = p.source.read(a.in[0].data, at, rows * columns, scratch);
    p.loops->moments(acc[0], acc[1], x, shift + column, rows, columns);
  };
  blocks.fold<2>(partial, 0.0F, leaf, k_plus);
  const auto rows = static_cast<double>(p.rows);
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const double s1 = blocks.joined(partial, 0, 0, c, k_plus);
    const double s2 = blocks.joined(partial, 1, 0, c, k_plus);
    const double mean = static_cast<double>(shift[c]) + s1 / rows;
    const double squares = s2 - s1 * (s1 / rows);
    const double variance = (squares < 0 ? 0 : squares) / rows;
    double new_mean = mean;
    double new_variance = variance * (rows / std::max(rows - 1, 1.0));
    if (p.factor != 1) {
      new_mean = (1 - p.factor) * static_cast<double>(a.in[3].as<float>()[c]) + p.factor * mean;
      new_variance =
          (1 - p.factor) * static_cast<double>(a.in[4].as<float>()[c]) + p.factor * new_variance;
    }
    a.out[1].as<float>()[c] = static_cast<float>(new_mean);
    a.out[2].as<float>()[c] = static_cast<float>(new_variance);
    a.out[3].as<float>()[c] = static_cast<float>(mean);
    a.out[4].as<float>()[c] = static_cast<float>(variance);
  }
}

double inverse_deviation(const Norm& p, float variance) {
  return 1 / std::sqrt(static_cast<double>(variance) + p.epsilon);
}

/// gain = scale / sqrt(variance + epsilon)
void find_gain(const Norm& p, const TensorView& scale, const TensorView& variance, float* gain) {
  for (std::int64_t c = 0; c < p.channels; ++c) {
    gain[c] = static_cast<float>(static_cast<double>(scale.as<float>()[c]) *
                                 inverse_deviation(p, variance.as<float>()[c]));
  }
}

/// The normalized elements of a piece of n, with the side input.
void store_with_side(
    const Norm& p, const Args& a, std::int64_t at, std::int64_t n, float* y, float* side_scratch) {
  alignas(64) float rounded[k_run];
  p.sink.store(rounded, 0, n, y);
  const float* normal = p.sink.loop == nullptr ? y : p.source.read(rounded, 0, n, y);
  const float* side = p.source.read(a.in[5].data, at, n, side_scratch);
  float* z = p.sink.place(a.out[0].data, at, y);
  p.loops->add_relu(z, normal, side, n);
  p.sink.store(a.out[0].data, at, n, z);
}

Prepared prepare_norm(const NodeView& node, const Capabilities& capabilities) {
  const Norm p(node, node.input(0).shape, capabilities);
  const RowBlocks blocks(1, p.rows, p.channels);
  return launch(
      [=](const Args& a) {
        const Workspace workspace(a, p, 1);
        if (p.training) {
          statistics(p, blocks, a, workspace.vectors, workspace.partial);
        } else {
          for (const std::size_t i : {1U, 3U})
            std::copy_n(a.in[3].as<float>(), p.channels, a.out[i].as<float>());
          for (const std::size_t i : {2U, 4U})
            std::copy_n(a.in[4].as<float>(), p.channels, a.out[i].as<float>());
        }
        *a.out[5].as<float>() = 0;
        find_gain(p, a.in[1], a.out[4], workspace.vectors);
        const float* mean = a.out[3].as<float>();
        const float* offset = a.in[2].as<float>();
        const auto loop = p.loops->normalize[p.relu && !p.side];
        for_each_piece(p, [&](auto at, auto c, auto rows, auto channels) {
          alignas(64) float x_scratch[k_run];
          alignas(64) float y_scratch[k_run];
          const float* x = p.source.read(a.in[0].data, at, rows * channels, x_scratch);
          const NormChannels here{mean + c, workspace.vectors + c, offset + c};
          if (p.side) {
            loop(y_scratch, x, here, rows, channels);
            store_with_side(p, a, at, rows * channels, y_scratch, x_scratch);
            return;
          }
          float* y = p.sink.place(a.out[0].data, at, y_scratch);
          loop(y, x, here, rows, channels);
          p.sink.store(a.out[0].data, at, rows * channels, y_scratch);
        });
      },
      Workspace::bytes(p, 1) + blocks.partials(2) * sizeof(double));
}

Prepared prepare_norm_grad(const NodeView& node, const Capabilities& capabilities) {
  const Norm p(node, node.input(1).shape, capabilities);
  const RowBlocks blocks(1, p.rows, p.channels);
  return launch(
      [=](const Args& args) {
        const Workspace workspace(args, p, 3);
        float* gain = workspace.vectors;
        float* a = gain + p.channels;
        float* b = a + p.channels;
        const TensorView& variance = args.in[p.relu ? 5 : 4];
        const NormChannels all{
            args.in[p.relu ? 4 : 3].as<float>(), gain, args.in[3].as<float>(), p.least()};
        const auto from = [&](std::int64_t c) {
          return NormChannels{all.mean + c, all.gain + c, all.offset + c, all.least};
        };
        find_gain(p, args.in[2], variance, gain);
        const auto leaf = [&](float** acc, auto at, auto column, auto rows, auto columns) {
          alignas(64) float dy_scratch[k_run];
          alignas(64) float x_scratch[k_run];
          const float* dy = p.source.read(args.in[0].data, at, rows * columns, dy_scratch);
          const float* x = p.source.read(args.in[1].data, at, rows * columns, x_scratch);
          p.loops->comoments[p.relu](acc[0], acc[1], dy, x, from(column), rows, columns);
        };
        blocks.fold<2>(workspace.partial, 0.0F, leaf, k_plus);
        const double share = p.training ? 1 / static_cast<double>(p.rows) : 0;
        for (std::int64_t c = 0; c < p.channels; ++c) {
          const double s1 = blocks.joined(workspace.partial, 0, 0, c, k_plus);
          const double s2 = blocks.joined(workspace.partial, 1, 0, c, k_plus);
          const double inverse = inverse_deviation(p, variance.as<float>()[c]);
          a[c] = static_cast<float>(p.training ? s1 * share : 0);
          b[c] = static_cast<float>(p.training ? s2 * inverse * inverse * share : 0);
          args.out[1].as<float>()[c] = static_cast<float>(s2 * inverse);
          args.out[2].as<float>()[c] = static_cast<float>(s1);
        }
        for_each_piece(p, [&](auto at, auto c, auto rows, auto channels) {
          alignas(64) float scratch[3][k_run];
          const float* dy = p.source.read(args.in[0].data, at, rows * channels, scratch[0]);
          const float* x = p.source.read(args.in[1].data, at, rows * channels, scratch[1]);
          float* dx = p.sink.place(args.out[0].data, at, scratch[2]);
          p.loops->normalize_grad[p.relu](dx, dy, x, from(c), a + c, b + c, rows, channels);
          p.sink.store(args.out[0].data, at, rows * channels, scratch[2]);
        });
      },
      Workspace::bytes(p, 3) + blocks.partials(2) * sizeof(double));
}

Accepts accepts_norm(const NodeView& node, const Capabilities&) {
  const DType x = node.output(0).dtype;
  const DType statistics = node.output(1).dtype;
  if (!is_computed(x)) return Accepts::no(fmt::format("no {} here", name(x)));
  if (statistics != DType::float32) {
    return Accepts::no(fmt::format("statistics in {}", name(statistics)));
  }
  if (node.output(0).shape.elements() == 0) return Accepts::no("empty");
  if (node.attrs().get_or<std::string>("data_format", "NHWC") != "NHWC") {
    return Accepts::no("channels are not the last axis");
  }
  const auto sides = node.attrs().get_or<std::int64_t>("num_side_inputs", 0);
  if (sides > 1) return Accepts::no("more than one side input");
  if (sides == 1 && node.attrs().get<std::string>("activation_mode") != "Relu") {
    return Accepts::no("a side input without Relu");
  }
  return Accepts::yes();
}

/// Rows of x and dy, which are read in runs.
struct LayerNorm {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  Source source;
  Sink sink;
  const Loops* loops = nullptr;

  LayerNorm(const NodeView& node, const Capabilities& capabilities)
      : rows(node.output().shape.elements() / node.output().shape.back()),
        columns(node.output().shape.back()),
        source(vector::loops(capabilities.isa), node.output().dtype),
        sink(vector::loops(capabilities.isa), node.output().dtype),
        loops(&vector::loops(capabilities.isa)) {}

  /// Calls body(row) for all rows, in parallel.
  template <class F>
  void for_each_row(const F& body) const {
    parallel_for(rows, std::max<std::int64_t>(1, 16384 / columns), [&](auto begin, auto end) {
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
  const auto sum = std::find_if(p.loops->folds.begin(), p.loops->folds.end(), [](const FoldRow& f) {
                     return std::string_view(f.op) == "Sum";
                   })->run;
  return launch([p, sum, epsilon = node.attrs().get<double>("epsilon")](const Args& a) {
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
        p.loops->normalize_row(p.sink.place(a.out[0].data, at, scratch[1]), x, here, count);
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
        const auto leaf = [&](float** acc, auto at, auto column, auto rows, auto columns) {
          alignas(64) float scratch[3][k_run];
          for (std::int64_t r = 0; r < rows; ++r, at += columns) {
            const std::int64_t row = at / p.columns;
            const float* dy = p.source.read(a.in[0].data, at, columns, scratch[0]);
            const float* x = p.source.read(a.in[1].data, at, columns, scratch[1]);
            const NormRow here{
                gamma + column, nullptr, mean[row], inverse[row], constant[row], slope[row]};
            float* dx = p.sink.place(a.out[0].data, at, scratch[2]);
            float* const y[] = {dx, acc[0], acc[1]};
            p.loops->normalize_row_grad(y, dy, x, here, columns);
            p.sink.store(a.out[0].data, at, columns, scratch[2]);
          }
        };
        blocks.fold<2>(partial, 0.0F, leaf, k_plus);
        for (std::int64_t c = 0; c < p.columns; ++c) {
          for (const int s : {0, 1}) {
            a.out[1 + static_cast<std::size_t>(s)].as<float>()[c] =
                static_cast<float>(blocks.joined(partial, s, 0, c, k_plus));
          }
        }
      },
      row_bytes + blocks.partials(2) * sizeof(double));
}

Accepts accepts_layer_norm(const NodeView& node, const Capabilities&) {
  const DType x = node.output().dtype;
  const DType moments = node.output(1).dtype;
  if (!is_computed(x)) return Accepts::no(fmt::format("no {} here", name(x)));
  if (moments != DType::float32) return Accepts::no(fmt::format("moments in {}", name(moments)));
  if (node.output().shape.elements() == 0) return Accepts::no("empty");
  return Accepts::yes();
}

}  // namespace

std::vector<Kernel> norm_kernels() {
  return {
      {"FusedBatchNormV3", "vector/norm", accepts_norm, prepare_norm, 0b1},
      {"FusedBatchNormGradV3", "vector/norm", accepts_norm, prepare_norm_grad, 0b11},
      {"_FusedBatchNormEx", "vector/norm", accepts_norm, prepare_norm, 0b100001},
      {"BatchNormReluGrad", "vector/norm", accepts_norm, prepare_norm_grad, 0b11},
      {"LayerNorm", "vector/layer_norm", accepts_layer_norm, prepare_layer_norm, 0b1},
      {"LayerNormGrad", "vector/layer_norm", accepts_layer_norm, prepare_layer_norm_grad, 0b11},
  };
}

}  // namespace halfstep::backend::cpu::vector

// Batch normalization over the rows of x [rows, channels]:
//   g = scale / sqrt(v + epsilon)
//   y = (x - m) * g + offset
//   doffset = sum dy, dscale = sum dy * (x - m) / sqrt(v + epsilon)
//   training:  dx = g * (dy - doffset / rows - (x - m) * dscale / (rows * sqrt(v + epsilon)))
//   inference: dx = g * dy
// Fused: z = max(y, 0) or max(y + side input, 0), of the rounded y; and the gradient of max(y, 0),
// whose dy is 0 unless the rounded y is above 0. It recomputes y bit-identically. Statistics need
// one pass over distances from the mean of some rows, which avoids cancellation: sums of up to 128
// rows are float32, larger ones double. Stored dtypes: x, y and their gradients float32, float16 or
// bfloat16; all others float32. Bit-identical for every instruction set and number of threads.

#include <algorithm>
#include <cmath>

#include "backend/cpu/vector/convert.h"
#include "backend/cpu/vector/kernels.h"
#include "backend/cpu/vector/row_blocks.h"
#include "core/error.h"
#include "graph/op_handles.h"

namespace halfstep::backend::cpu::vector {
namespace {

struct Norm : TypedLoops {
  std::int64_t rows = 1;
  std::int64_t channels = 1;
  double epsilon = 0;
  double factor = 1;
  bool training = true;
  bool relu = false;
  bool side = false;  ///< input 5 is added
  const NormLoops* norm = nullptr;

  Norm(const NodeView& node, const graph::TensorType& x, const Capabilities& capabilities)
      : TypedLoops(capabilities.isa, x.dtype),
        rows(x.shape.elements() / x.shape.back()),
        channels(x.shape.back()),
        epsilon(node.attrs().get_or<double>("epsilon", 0)),
        factor(node.attrs().get_or<double>("exponential_avg_factor", 1.0)),
        training(node.attrs().get_or<bool>("is_training", false)),
        relu(node.node.is(graph::ops::k_batch_norm_relu_grad) ||
             node.attrs().get_or<std::int64_t>("num_relu_inputs", 0) > 0 ||
             node.attrs().get_or<std::string>("activation_mode", "Identity") == "Relu"),
        side(node.attrs().get_or<std::int64_t>("num_side_inputs", 0) > 0),
        norm(&loops->norm[index()]) {}

  /// The address of elements from `at` on.
  void* address(const TensorView& x, std::int64_t at) const {
    return x.as<std::byte>() + at * source.size;
  }
  /// Where `norm` writes elements from `at` on: in the tensor, or in `scratch`.
  void* buffer(const TensorView& y, std::int64_t at, float* scratch) const {
    return norm->float32_results ? sink.buffer(y.data, at, scratch) : address(y, at);
  }
  /// Stores elements that were written to buffer().
  void store(const TensorView& y, std::int64_t at, std::int64_t n, const float* scratch) const {
    if (norm->float32_results) sink.store(y.data, at, n, scratch);
  }

  /// The maximum value that rounds to 0: half the smallest positive value of the stored dtype.
  float relu_threshold() const {
    if (dtype == DType::float16) return 0x1p-25F;
    return dtype == DType::bfloat16 ? 0x1p-134F : 0.0F;
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

/// Calls body(first element, first channel, rows, channels) for chunks of at most k_run elements.
template <class F>
void for_each_chunk(const Norm& p, const F& body) {
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

/// The mean of up to 32 rows spread over x, which estimates the mean of all rows.
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

/// Calls set(channel, mean, biased variance) for each channel.
template <class F>
void moments(const Norm& p,
             const RowBlocks& blocks,
             const Args& a,
             const Workspace& workspace,
             const F& set) {
  float* shift = workspace.vectors;
  double* partial = workspace.partial;
  sample_mean(p, a.in[0].data, shift);
  const auto accumulate = [&](float** acc, auto at, auto column, auto rows, auto columns) {
    p.norm->moments(acc[0], acc[1], p.address(a.in[0], at), shift + column, rows, columns);
  };
  blocks.reduce<2>(partial, 0.0F, accumulate, k_plus);
  const auto rows = static_cast<double>(p.rows);
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const double s1 = blocks.combined(partial, 0, 0, c, k_plus);
    const double s2 = blocks.combined(partial, 1, 0, c, k_plus);
    const double mean = static_cast<double>(shift[c]) + s1 / rows;
    const double squares = s2 - s1 * (s1 / rows);
    set(c, mean, (squares < 0 ? 0 : squares) / rows);
  }
}

/// Writes mean, biased variance and the outputs for the moving averages.
void statistics(const Norm& p, const RowBlocks& blocks, const Args& a, const Workspace& workspace) {
  const auto rows = static_cast<double>(p.rows);
  moments(p, blocks, a, workspace, [&](std::int64_t c, double mean, double variance) {
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
  });
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

NormChannels channels_from(const NormChannels& all, std::int64_t c) {
  const auto after = [c](const float* vector) { return vector == nullptr ? nullptr : vector + c; };
  return {after(all.mean), after(all.gain), after(all.offset), all.relu_threshold};
}

Prepared prepare_norm(const NodeView& node, const Capabilities& capabilities) {
  const Norm p(node, node.input(0), capabilities);
  const RowBlocks blocks(1, p.rows, p.channels);
  return launch(
      [=](const Args& a) {
        const Workspace workspace(a, p, 1);
        if (p.training) {
          statistics(p, blocks, a, workspace);
        } else if (a.out.size() > 1) {
          for (const std::size_t i : {1U, 3U})
            std::copy_n(a.in[3].as<float>(), p.channels, a.out[i].as<float>());
          for (const std::size_t i : {2U, 4U})
            std::copy_n(a.in[4].as<float>(), p.channels, a.out[i].as<float>());
        }
        if (a.out.size() > 5) *a.out[5].as<float>() = 0;
        find_gain(p, a.in[1], p.training ? a.out[4] : a.in[4], workspace.vectors);
        const float* mean = (p.training ? a.out[3] : a.in[3]).as<float>();
        const float* offset = a.in[2].as<float>();
        const auto loop = p.norm->normalize[p.side ? 2 : p.relu ? 1 : 0];
        for_each_chunk(p, [&](auto at, auto c, auto rows, auto channels) {
          alignas(64) float scratch[k_run];
          const void* side = p.side ? p.address(a.in[5], at) : nullptr;
          const NormChannels here{mean + c, workspace.vectors + c, offset + c};
          void* z = p.buffer(a.out[0], at, scratch);
          loop(z, p.address(a.in[0], at), side, here, rows, channels);
          p.store(a.out[0], at, rows * channels, scratch);
        });
      },
      Workspace::bytes(p, 1) + blocks.partials(2) * sizeof(double));
}

Prepared prepare_moments(const NodeView& node, const Capabilities& capabilities) {
  const Norm p(node, node.input(0), capabilities);
  const RowBlocks blocks(1, p.rows, p.channels);
  return launch(
      [=](const Args& a) {
        moments(p, blocks, a, Workspace(a, p, 1), [&](auto c, double mean, double variance) {
          a.out[0].as<float>()[c] = static_cast<float>(mean);
          a.out[1].as<float>()[c] = static_cast<float>(variance);
        });
      },
      Workspace::bytes(p, 1) + blocks.partials(2) * sizeof(double));
}

/// Computes the sums over all rows of dy and of dy (x - m).
void sum_gradients(const Norm& p,
                   const RowBlocks& blocks,
                   const Args& args,
                   const NormChannels& all,
                   double* partial) {
  const auto accumulate = [&](float** acc, auto at, auto column, auto rows, auto columns) {
    const void* dy = p.address(args.in[0], at);
    const void* x = p.address(args.in[1], at);
    p.norm->comoments[p.relu](acc[0], acc[1], dy, x, channels_from(all, column), rows, columns);
  };
  blocks.reduce<2>(partial, 0.0F, accumulate, k_plus);
}

/// dx = g (dy - a - (x - m) b)
void store_gradient(
    const Norm& p, const Args& args, const NormChannels& all, const float* a, const float* b) {
  for_each_chunk(p, [&](auto at, auto c, auto rows, auto channels) {
    alignas(64) float scratch[k_run];
    const void* dy = p.address(args.in[0], at);
    const void* x = p.address(args.in[1], at);
    void* dx = p.buffer(args.out[0], at, scratch);
    p.norm->normalize_grad[p.relu](dx, dy, x, channels_from(all, c), a + c, b + c, rows, channels);
    p.store(args.out[0], at, rows * channels, scratch);
  });
}

Prepared prepare_norm_grad(const NodeView& node, const Capabilities& capabilities) {
  const Norm p(node, node.input(1), capabilities);
  const RowBlocks blocks(1, p.rows, p.channels);
  return launch(
      [=](const Args& args) {
        const Workspace workspace(args, p, 3);
        float* gain = workspace.vectors;
        float* a = gain + p.channels;
        float* b = a + p.channels;
        const TensorView& variance = args.in[p.relu ? 5 : 4];
        const NormChannels all{
            args.in[p.relu ? 4 : 3].as<float>(), gain, args.in[3].as<float>(), p.relu_threshold()};
        find_gain(p, args.in[2], variance, gain);
        sum_gradients(p, blocks, args, all, workspace.partial);
        const double share = p.training ? 1 / static_cast<double>(p.rows) : 0;
        for (std::int64_t c = 0; c < p.channels; ++c) {
          const double s1 = blocks.combined(workspace.partial, 0, 0, c, k_plus);
          const double s2 = blocks.combined(workspace.partial, 1, 0, c, k_plus);
          const double inverse = inverse_deviation(p, variance.as<float>()[c]);
          a[c] = static_cast<float>(p.training ? s1 * share : 0);
          b[c] = static_cast<float>(p.training ? s2 * inverse * inverse * share : 0);
          args.out[1].as<float>()[c] = static_cast<float>(s2 * inverse);
          args.out[2].as<float>()[c] = static_cast<float>(s1);
        }
        store_gradient(p, args, all, a, b);
      },
      Workspace::bytes(p, 3) + blocks.partials(2) * sizeof(double));
}

Prepared prepare_gradient_sums(const NodeView& node, const Capabilities& capabilities) {
  const Norm p(node, node.input(1), capabilities);
  const RowBlocks blocks(1, p.rows, p.channels);
  return launch(
      [=](const Args& args) {
        const Workspace workspace(args, p, 1);
        NormChannels all{args.in[2].as<float>(), nullptr, nullptr, p.relu_threshold()};
        if (p.relu) {
          find_gain(p, args.in[4], args.in[3], workspace.vectors);
          all.gain = workspace.vectors;
          all.offset = args.in[5].as<float>();
        }
        sum_gradients(p, blocks, args, all, workspace.partial);
        for (std::int64_t c = 0; c < p.channels; ++c) {
          const double s2 = blocks.combined(workspace.partial, 1, 0, c, k_plus);
          args.out[0].as<float>()[c] =
              static_cast<float>(s2 * inverse_deviation(p, args.in[3].as<float>()[c]));
          args.out[1].as<float>()[c] =
              static_cast<float>(blocks.combined(workspace.partial, 0, 0, c, k_plus));
        }
      },
      Workspace::bytes(p, 1) + blocks.partials(2) * sizeof(double));
}

Prepared prepare_gradient_by_moments(const NodeView& node, const Capabilities& capabilities) {
  const Norm p(node, node.input(1), capabilities);
  const auto rows = static_cast<double>(node.attrs().get<std::int64_t>("rows"));
  const double share = rows > 0 ? 1 / rows : 0;
  return launch(
      [=](const Args& args) {
        float* gain = Workspace(args, p, 3).vectors;
        float* a = gain + p.channels;
        float* b = a + p.channels;
        find_gain(p, args.in[2], args.in[4], gain);
        for (std::int64_t c = 0; c < p.channels; ++c) {
          const double slope = static_cast<double>(args.in[5].as<float>()[c]) *
                               inverse_deviation(p, args.in[4].as<float>()[c]);
          a[c] = static_cast<float>(static_cast<double>(args.in[6].as<float>()[c]) * share);
          b[c] = static_cast<float>(slope * share);
        }
        const float* offset = p.relu ? args.in[7].as<float>() : nullptr;
        store_gradient(p, args, {args.in[3].as<float>(), gain, offset, p.relu_threshold()}, a, b);
      },
      Workspace::bytes(p, 3));
}

/// Accepts at most one side input, and only before a Relu.
Accepts accepts_side(const NodeView& node) {
  const auto sides = node.attrs().get_or<std::int64_t>("num_side_inputs", 0);
  if (sides > 1) return Accepts::no("more than one side input");
  if (sides == 1 && node.attrs().get<std::string>("activation_mode") != "Relu") {
    return Accepts::no("a side input without Relu");
  }
  return Accepts::yes();
}

/// Input 0 is x or its gradient.
Accepts accepts_moments(const NodeView& node, const Capabilities&) {
  const graph::TensorType& x = node.input(0);
  const DType statistics = node.inputs() > 1
                               ? node.input(std::min<std::size_t>(node.inputs(), 5) - 1).dtype
                               : node.output().dtype;
  if (Accepts a = accepts_dtype(x.dtype); !a) return a;
  if (statistics != DType::float32) {
    return Accepts::no(fmt::format("statistics in {}", name(statistics)));
  }
  return x.shape.elements() == 0 ? Accepts::no("empty") : accepts_side(node);
}

Accepts accepts_norm(const NodeView& node, const Capabilities&) {
  const DType x = node.output(0).dtype;
  const DType statistics = node.output(1).dtype;
  if (Accepts a = accepts_dtype(x); !a) return a;
  if (statistics != DType::float32) {
    return Accepts::no(fmt::format("statistics in {}", name(statistics)));
  }
  if (node.output(0).shape.elements() == 0) return Accepts::no("empty");
  if (node.attrs().get_or<std::string>("data_format", "NHWC") != "NHWC") {
    return Accepts::no("channels are not the last axis");
  }
  return accepts_side(node);
}

}  // namespace

std::vector<Kernel> norm_kernels() {
  return {
      {"BatchMoments", "vector/moments", accepts_moments, prepare_moments},
      {"NormalizeByMoments", "vector/norm", accepts_moments, prepare_norm, 0b100001},
      {"BatchNormGradSums", "vector/norm_grad_sums", accepts_moments, prepare_gradient_sums},
      {"NormalizeByMomentsGrad", "vector/norm", accepts_moments, prepare_gradient_by_moments, 0b11},
      {"FusedBatchNormV3", "vector/norm", accepts_norm, prepare_norm, 0b1},
      {"FusedBatchNormGradV3", "vector/norm", accepts_norm, prepare_norm_grad, 0b11},
      {"_FusedBatchNormEx", "vector/norm", accepts_norm, prepare_norm, 0b100001},
      {"BatchNormReluGrad", "vector/norm", accepts_norm, prepare_norm_grad, 0b11},
  };
}

}  // namespace halfstep::backend::cpu::vector

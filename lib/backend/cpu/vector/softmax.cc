// Softmax over the last axis and the cross-entropies, in float32, one rounding on store. Stored
// dtypes: float32, float16, bfloat16; labels of the sparse form int32 or int64. Bit-identical for
// every instruction set and number of threads.

#include <algorithm>
#include <cstring>

#include "backend/cpu/vector/convert.h"
#include "backend/cpu/vector/kernels.h"
#include "core/error.h"
#include "core/parallel.h"

namespace halfstep::backend::cpu::vector {
namespace {

/// Rows of logits, processed in groups of `group` rows. Each of `parts` parts has memory in the
/// workspace.
struct Logits : TypedLoops {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t group = 1;
  std::int64_t parts = 1;

  Logits(const NodeView& node, const Capabilities& capabilities)
      : TypedLoops(capabilities.isa, node.input(0).dtype),
        rows(node.input(0).shape.elements() / node.input(0).shape.back()),
        columns(node.input(0).shape.back()),
        group(std::max<std::int64_t>(1, k_run / columns)) {
    constexpr std::int64_t k_grain = 4096;
    parts = std::clamp<std::int64_t>(rows * columns / k_grain, 1, capabilities.threads);
  }

  std::int64_t buffer_size() const { return (group * columns + 15) / 16 * 16; }
  std::size_t workspace_bytes(int count) const {
    return static_cast<std::size_t>(parts * count * buffer_size()) * sizeof(float);
  }

  /// Calls body(first row, rows, buffers) for all groups; the `count` buffers are buffer_size()
  /// floats apart.
  template <class F>
  void for_each_group(const Args& args, int count, const F& body) const {
    auto* workspace = static_cast<float*>(static_cast<void*>(args.workspace));
    parallel_for_each(parts, 1, [&](std::int64_t part) {
      const std::int64_t stop = rows * (part + 1) / parts;
      for (std::int64_t row = rows * part / parts; row < stop; row += group) {
        body(row, std::min(group, stop - row), workspace + part * count * buffer_size());
      }
    });
  }
};

template <bool logarithm>
Prepared prepare_softmax(const NodeView& node, const Capabilities& capabilities) {
  const Logits p(node, capabilities);
  return launch(
      [p](const Args& args) {
        p.for_each_group(args, 3, [&](std::int64_t row, std::int64_t rows, float* buffers) {
          const std::int64_t at = row * p.columns;
          const std::int64_t n = rows * p.columns;
          const float* x = p.source.read(args.in[0].data, at, n, buffers);
          float* y = p.sink.buffer(args.out[0].data, at, buffers + p.buffer_size());
          if constexpr (logarithm) {
            p.loops->log_softmax(y, buffers + 2 * p.buffer_size(), x, rows, p.columns);
          } else {
            p.loops->softmax(y, x, rows, p.columns);
          }
          p.sink.store(args.out[0].data, at, n, y);
        });
      },
      p.workspace_bytes(3));
}

/// Labels of a group as int64; a group has at most k_run rows.
void read_labels(const TensorView& labels, std::int64_t row, std::int64_t rows, std::int64_t* out) {
  if (labels.dtype == DType::int64) {
    std::copy_n(labels.as<std::int64_t>() + row, rows, out);
  } else {
    std::copy_n(labels.as<std::int32_t>() + row, rows, out);
  }
}

template <bool sparse>
Prepared prepare_cross_entropy(const NodeView& node, const Capabilities& capabilities) {
  const Logits p(node, capabilities);
  return launch(
      [p](const Args& args) {
        p.for_each_group(args, 4, [&](std::int64_t row, std::int64_t rows, float* buffers) {
          const std::int64_t at = row * p.columns;
          const std::int64_t n = rows * p.columns;
          float loss_scratch[k_run];
          const float* x = p.source.read(args.in[0].data, at, n, buffers);
          float* dx = p.sink.buffer(args.out[1].data, at, buffers + p.buffer_size());
          float* loss = p.sink.buffer(args.out[0].data, row, loss_scratch);
          float* z = buffers + 2 * p.buffer_size();
          if constexpr (sparse) {
            std::int64_t labels[k_run];
            read_labels(args.in[1], row, rows, labels);
            p.loops->sparse_cross_entropy(loss, dx, z, x, labels, rows, p.columns);
          } else {
            const float* labels =
                p.source.read(args.in[1].data, at, n, buffers + 3 * p.buffer_size());
            p.loops->cross_entropy(loss, dx, z, x, labels, rows, p.columns);
          }
          p.sink.store(args.out[1].data, at, n, dx);
          p.sink.store(args.out[0].data, row, rows, loss);
        });
      },
      p.workspace_bytes(4));
}

Accepts accepts_logits(const NodeView& node, const Capabilities&) {
  const graph::TensorType& x = node.input(0);
  return x.shape.elements() == 0 ? Accepts::no("empty") : accepts_dtype(x.dtype);
}

}  // namespace

std::vector<Kernel> softmax_kernels() {
  constexpr std::string_view k_name = "vector/softmax";
  return {
      {"LogSoftmax", k_name, accepts_logits, prepare_softmax<true>, 0b1},
      {"Softmax", k_name, accepts_logits, prepare_softmax<false>, 0b1},
      {"SoftmaxCrossEntropyWithLogits", k_name, accepts_logits, prepare_cross_entropy<false>},
      {"SparseSoftmaxCrossEntropyWithLogits", k_name, accepts_logits, prepare_cross_entropy<true>},
  };
}

}  // namespace halfstep::backend::cpu::vector

// Matmul and BiasAdd. Multiplied and accumulated in double (int64 for integers), rounded once on
// store. Bit-identical for every number of threads.

#include <algorithm>

#include "backend/cpu/reference/reduction.h"
#include "backend/cpu/reference/reference.h"

namespace halfstep::backend::cpu {
namespace {

/// Columns of the result that are accumulated together.
constexpr std::int64_t k_lanes = 64;

/// One matmul [rows, depth] x [depth, columns] with the strides of its operands.
struct MatMulStrides {
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t columns;
  std::int64_t a_row;
  std::int64_t a_depth;
  std::int64_t b_depth;
  std::int64_t b_column;
};

/// `a` is [.., rows, depth] or, transposed, [.., depth, rows]; `b` likewise.
MatMulStrides matmul_strides(const Shape& a, const Shape& b, bool ta, bool tb) {
  const std::int64_t a0 = a[a.rank() - 2];
  const std::int64_t b0 = b[b.rank() - 2];
  return {.rows = ta ? a.back() : a0,
          .depth = ta ? a0 : a.back(),
          .columns = tb ? b0 : b.back(),
          .a_row = ta ? 1 : a.back(),
          .a_depth = ta ? a.back() : 1,
          .b_depth = tb ? 1 : b.back(),
          .b_column = tb ? b.back() : 1};
}

/// Rows [begin, end) of y = a b.
template <class T>
void multiply(
    const MatMulStrides& p, const T* a, const T* b, T* y, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    for (std::int64_t column = 0; column < p.columns; column += k_lanes) {
      const std::int64_t lanes = std::min(k_lanes, p.columns - column);
      std::array<Sum<T>, k_lanes> sums{};
      for (std::int64_t k = 0; k < p.depth; ++k) {
        const Sum<T> x = load_sum(a[row * p.a_row + k * p.a_depth]);
        const T* from = b + k * p.b_depth + column * p.b_column;
        for (std::int64_t i = 0; i < lanes; ++i) {
          sums[static_cast<std::size_t>(i)] += x * load_sum(from[i * p.b_column]);
        }
      }
      for (std::int64_t i = 0; i < lanes; ++i) {
        y[row * p.columns + column + i] = store<T>(sums[static_cast<std::size_t>(i)]);
      }
    }
  }
}

std::int64_t row_grain(const MatMulStrides& p) { return k_grain / (p.depth * p.columns + 1) + 1; }

Prepared prepare_matmul(const NodeView& node, const Capabilities&) {
  const MatMulStrides p = matmul_strides(node.input(0).shape,
                                         node.input(1).shape,
                                         node.attrs().get<bool>("transpose_a"),
                                         node.attrs().get<bool>("transpose_b"));
  return dispatch_number(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([p](const Args& args) {
      parallel_for(p.rows, row_grain(p), [&](std::int64_t begin, std::int64_t end) {
        multiply(p, args.in[0].as<T>(), args.in[1].as<T>(), args.out[0].as<T>(), begin, end);
      });
    });
  });
}

/// The batch axes.
Shape batch_of(const Shape& shape) { return Shape(shape.dims().first(shape.rank() - 2)); }

/// Strides of a batch of matrices with `size` elements each, broadcast to `batch`.
Strides batch_strides(const Shape& operand, const Shape& batch) {
  Strides strides = broadcast_strides(batch_of(operand), batch);
  for (std::int64_t& s : strides) s *= operand.elements(operand.rank() - 2, operand.rank());
  return strides;
}

Prepared prepare_batch_matmul(const NodeView& node, const Capabilities&) {
  const Shape& x = node.input(0).shape;
  const Shape& y = node.input(1).shape;
  const MatMulStrides p =
      matmul_strides(x, y, node.attrs().get<bool>("adj_x"), node.attrs().get<bool>("adj_y"));
  const Shape batch = batch_of(node.output().shape);
  const std::array<Strides, 2> strides{batch_strides(x, batch), batch_strides(y, batch)};
  return dispatch_number(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([=](const Args& args) {
      const std::int64_t grain = row_grain(p) / (p.rows + 1) + 1;
      parallel_for(batch.elements(), grain, [&](std::int64_t begin, std::int64_t end) {
        walk(batch, strides, begin, end, [&](std::int64_t i, const auto& at) {
          multiply(p,
                   args.in[0].as<T>() + at[0],
                   args.in[1].as<T>() + at[1],
                   args.out[0].as<T>() + i * p.rows * p.columns,
                   0,
                   p.rows);
        });
      });
    });
  });
}

std::size_t channel_axis(const NodeView& node) {
  const bool last = node.attrs().get<std::string>("data_format") == "NHWC";
  return last ? node.input(0).shape.rank() - 1 : 1;
}

/// y = x + bias[channel]
Prepared prepare_bias_add(const NodeView& node, const Capabilities&) {
  const Shape shape = node.output().shape;
  std::array<Strides, 2> strides{dense_strides(shape), Strides{}};
  strides[1][channel_axis(node)] = 1;
  return dispatch_number(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([=](const Args& args) {
      const T* x = args.in[0].as<T>();
      const T* bias = args.in[1].as<T>();
      T* y = args.out[0].as<T>();
      parallel_for(shape.elements(), k_grain, [&](std::int64_t begin, std::int64_t end) {
        walk(shape, strides, begin, end, [&](std::int64_t i, const auto& at) {
          y[i] = store<T>(load(x[at[0]]) + load(bias[at[1]]));
        });
      });
    });
  });
}

/// dbias[channel] = sum of dy over all other axes, dy in T and dbias in Y.
template <class T, class Y>
Prepared sum_channels(const NodeView& node) {
  const Shape& shape = node.input(0).shape;
  std::vector<bool> is_reduced(shape.rank(), true);
  is_reduced[channel_axis(node)] = false;
  return launch([r = reduction(shape, is_reduced)](const Args& args) {
    Y* y = args.out[0].as<Y>();
    fold(
        r,
        args.in[0].as<T>(),
        Sum<T>{},
        [](Sum<T> sum, T x, std::int64_t) { return sum + load_sum(x); },
        [&](std::int64_t i, Sum<T> sum) { y[i] = store<Y>(sum); });
  });
}

Prepared prepare_bias_add_grad(const NodeView& node, const Capabilities&) {
  return dispatch_number(node.output().dtype,
                         [&]<class T>(Type<T>) { return sum_channels<T, T>(node); });
}

Prepared prepare_cast_bias_add_grad(const NodeView& node, const Capabilities&) {
  return dispatch_number(node.input(0).dtype,
                         [&]<class T>(Type<T>) { return sum_channels<T, float>(node); });
}

}  // namespace

std::vector<Kernel> matmul_kernels() {
  return {
      {"BatchMatMulV2", "reference/batch_matmul_v2", executable, prepare_batch_matmul},
      {"BiasAdd", "reference/bias_add", executable, prepare_bias_add, 0b1},
      {"BiasAddGrad", "reference/bias_add_grad", executable, prepare_bias_add_grad},
      {"CastBiasAddGrad", "reference/cast_bias_add_grad", executable, prepare_cast_bias_add_grad},
      {"MatMul", "reference/matmul", executable, prepare_matmul},
  };
}

}  // namespace halfstep::backend::cpu

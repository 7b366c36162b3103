// Softmax over the last axis and the cross-entropies. Exponentials and sums in double, relative to
// the largest logit of the row; one rounding on store. A NaN or +inf logit makes its row NaN.

#include <cmath>
#include <limits>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"

namespace halfstep::backend::cpu {
namespace {

constexpr double k_nan = std::numeric_limits<double>::quiet_NaN();

/// max(x) and log(sum(exp(x - max))) of one row.
struct RowSums {
  double max;
  double log_sum;
};

template <class T>
RowSums row_sums(const T* x, std::int64_t n) {
  double max = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < n; ++i) max = load_sum(x[i]) > max ? load_sum(x[i]) : max;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(load_sum(x[i]) - max);
  return {max, std::log(sum)};
}

/// Calls body(first element of the row, row) for all rows, in threads.
template <class F>
void each_row(std::int64_t rows, std::int64_t width, const F& body) {
  parallel_for_each(
      rows, k_grain / (16 * width + 1) + 1, [&](std::int64_t row) { body(row * width, row); });
}

template <bool logarithm>
Prepared prepare_softmax(const NodeView& node, const Capabilities&) {
  const Shape& shape = node.input(0).shape;
  const std::int64_t width = shape.back();
  const std::int64_t rows = shape.elements(0, shape.rank() - 1);
  return dispatch_floating(node.input(0).dtype, [&]<class T>(Type<T>) {
    return launch([=](const Args& args) {
      each_row(rows, width, [&](std::int64_t at, std::int64_t) {
        const T* x = args.in[0].as<T>() + at;
        T* y = args.out[0].as<T>() + at;
        const RowSums s = row_sums(x, width);
        for (std::int64_t i = 0; i < width; ++i) {
          const double log_y = load_sum(x[i]) - s.max - s.log_sum;
          y[i] = store<T>(logarithm ? log_y : std::exp(log_y));
        }
      });
    });
  });
}

/// loss = -sum(labels * log_softmax(x)), dx = softmax(x) - labels. A class with label 0 adds
/// nothing to the loss, whatever its logit.
Prepared prepare_cross_entropy(const NodeView& node, const Capabilities&) {
  const Shape shape = node.input(0).shape;
  return dispatch_floating(node.input(0).dtype, [&]<class T>(Type<T>) {
    return launch([shape](const Args& args) {
      each_row(shape[0], shape[1], [&](std::int64_t at, std::int64_t row) {
        const T* x = args.in[0].as<T>() + at;
        const T* labels = args.in[1].as<T>() + at;
        T* dx = args.out[1].as<T>() + at;
        const RowSums s = row_sums(x, shape[1]);
        double loss = std::isnan(s.log_sum) ? k_nan : 0;
        for (std::int64_t i = 0; i < shape[1]; ++i) {
          const double log_y = load_sum(x[i]) - s.max - s.log_sum;
          const double label = load_sum(labels[i]);
          if (label != 0) loss -= label * log_y;
          dx[i] = store<T>(std::exp(log_y) - label);
        }
        args.out[0].as<T>()[row] = store<T>(loss);
      });
    });
  });
}

/// loss = -log_softmax(x)[label], dx = softmax(x) - onehot(label). A label out of range makes the
/// loss and the row of dx NaN, as TensorFlow does on a GPU.
template <class T, class Label>
Prepared sparse_cross_entropy(const Shape& shape) {
  return launch([shape](const Args& args) {
    each_row(shape[0], shape[1], [&](std::int64_t at, std::int64_t row) {
      const T* x = args.in[0].as<T>() + at;
      const auto label = static_cast<std::int64_t>(args.in[1].as<Label>()[row]);
      T* dx = args.out[1].as<T>() + at;
      const bool exists = label >= 0 && label < shape[1];
      const RowSums s = row_sums(x, shape[1]);
      for (std::int64_t i = 0; i < shape[1]; ++i) {
        const double y = std::exp(load_sum(x[i]) - s.max - s.log_sum);
        dx[i] = store<T>(exists ? y - (i == label ? 1 : 0) : k_nan);
      }
      const double loss = exists ? s.max + s.log_sum - load_sum(x[label]) : k_nan;
      args.out[0].as<T>()[row] = store<T>(loss);
    });
  });
}

Prepared prepare_sparse_cross_entropy(const NodeView& node, const Capabilities&) {
  const Shape& shape = node.input(0).shape;
  return dispatch_floating(node.input(0).dtype, [&]<class T>(Type<T>) {
    return node.input(1).dtype == DType::int32 ? sparse_cross_entropy<T, std::int32_t>(shape)
                                               : sparse_cross_entropy<T, std::int64_t>(shape);
  });
}

Prepared prepare_softmax_loss(const NodeView& node, const Capabilities&) {
  const Shape shape = node.input(0).shape;
  const std::string forms = node.attrs().get<std::string>("forms");
  const auto given = node.attrs().get<std::int64_t>("classes");
  const std::int64_t classes = given == 0 ? shape[1] : given;
  return dispatch_floating(node.input(0).dtype, [&]<class T>(Type<T>) {
    return launch([shape, forms, classes](const Args& args) {
      const auto out = [&](char form) {
        const std::size_t at = forms.find(form);
        return at == std::string::npos ? nullptr : args.out[at].data;
      };
      auto* p = static_cast<float*>(out('p'));
      auto* losses = static_cast<float*>(out('l'));
      auto* mean = static_cast<float*>(out('m'));
      auto* correct = static_cast<float*>(out('c'));
      auto* g = static_cast<T*>(out('g'));
      const std::int64_t rows = shape[0], columns = shape[1];
      const float seed = g == nullptr ? 0 : *args.in[2].as<float>() / static_cast<float>(rows);
      double sum = 0;
      std::int64_t found = 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        const T* x = args.in[0].as<T>() + row * columns;
        const RowSums s = row_sums(x, classes);
        const std::int64_t label = args.in[1].dtype == DType::int64
                                       ? args.in[1].as<std::int64_t>()[row]
                                       : args.in[1].as<std::int32_t>()[row];
        const bool known = label >= 0 && label < classes;
        std::int64_t best = 0;
        float largest = 0;
        for (std::int64_t i = 0; i < classes; ++i) {
          const auto y = static_cast<float>(std::exp(load_sum(x[i]) - s.max - s.log_sum));
          if (i == 0 || y > largest) {
            best = i;
            largest = y;
          }
          if (p != nullptr) p[row * classes + i] = y;
          if (g == nullptr) continue;
          const auto slope = static_cast<float>(known ? double{y} - (i == label ? 1 : 0) : k_nan);
          g[row * columns + i] = store<T>(static_cast<double>(seed * slope));
        }
        if (g != nullptr) std::fill_n(g + row * columns + classes, columns - classes, T{});
        const auto loss =
            static_cast<float>(known ? s.max + s.log_sum - load_sum(x[label]) : k_nan);
        if (losses != nullptr) losses[row] = loss;
        sum += loss;
        found += best == label ? 1 : 0;
      }
      if (mean != nullptr) *mean = static_cast<float>(sum / static_cast<double>(rows));
      if (correct != nullptr) *correct = static_cast<float>(found);
    });
  });
}

}  // namespace

std::vector<Kernel> softmax_kernels() {
  return {
      {"LogSoftmax", "reference/log_softmax", executable, prepare_softmax<true>, 0b1},
      {"Softmax", "reference/softmax", executable, prepare_softmax<false>, 0b1},
      {"SoftmaxCrossEntropyWithLogits",
       "reference/softmax_cross_entropy_with_logits",
       executable,
       prepare_cross_entropy},
      {"SparseSoftmaxCrossEntropyWithLogits",
       "reference/sparse_softmax_cross_entropy_with_logits",
       executable,
       prepare_sparse_cross_entropy},
      {"SoftmaxLoss", "reference/softmax_loss", executable, prepare_softmax_loss},
  };
}

}  // namespace halfstep::backend::cpu

// Pooling and its gradients. Max: NaN is larger than every number, the stored element is passed on
// unchanged; the gradient goes to the first maximum in row-major order. Average: sums in double
// over the pixels inside the image. Gradients gather: an input pixel adds the contributions of the
// windows that contain it in double, with one rounding. Bit-identical for every number of threads.

#include <algorithm>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "graph/ops/window.h"

namespace halfstep::backend::cpu {
namespace {

using graph::ops::Window;
using graph::ops::WindowAxis;

/// Whether `b` replaces the largest value `a` so far; nothing replaces a NaN.
template <class C>
bool above(C b, C a) {
  return !(b <= a) && a == a;
}

struct Pool {
  Window window;
  std::int64_t batch = 1;
  std::int64_t channels = 1;

  std::int64_t input_rows() const { return batch * window.height.input; }
  std::int64_t output_rows() const { return batch * window.height.output; }
  std::int64_t outputs() const { return output_rows() * window.width.output * channels; }
  /// The first channel of input pixel (row, column) of image n.
  std::int64_t input_pixel(std::int64_t n, std::int64_t row, std::int64_t column) const {
    return ((n * window.height.input + row) * window.width.input + column) * channels;
  }
  std::int64_t output_pixel(std::int64_t n, std::int64_t i, std::int64_t j) const {
    return ((n * window.height.output + i) * window.width.output + j) * channels;
  }
  /// Number of pixels inside the image of the window at output (i, j).
  std::int64_t cells(std::int64_t i, std::int64_t j) const {
    const WindowAxis &h = window.height, &w = window.width;
    return (h.last_tap(i) - h.first_tap(i)) * (w.last_tap(j) - w.first_tap(j));
  }
};

/// Rows per part, so that a part outweighs the cost of waking a thread.
std::int64_t grain(const Pool& p) {
  return rows_per_part(20'000, p.window.width.input * p.channels * 4);
}

/// Calls body(offset of the first channel) for every pixel inside the image of the window at
/// output (i, j).
template <class F>
void for_each_cell(const Pool& p, std::int64_t n, std::int64_t i, std::int64_t j, F&& body) {
  const WindowAxis &h = p.window.height, &w = p.window.width;
  for (std::int64_t kh = h.first_tap(i); kh < h.last_tap(i); ++kh) {
    for (std::int64_t kw = w.first_tap(j); kw < w.last_tap(j); ++kw) {
      body(p.input_pixel(n, h.cell(i, kh), w.cell(j, kw)));
    }
  }
}

/// Calls body(image, output row, output column) for all outputs, in parallel.
template <class F>
void for_each_output(const Pool& p, F&& body) {
  const WindowAxis &h = p.window.height, &w = p.window.width;
  parallel_for_each(p.output_rows(), grain(p), [&](std::int64_t row) {
    for (std::int64_t j = 0; j < w.output; ++j) body(row / h.output, row % h.output, j);
  });
}

/// Offset of the maximum of channel c in the window at output (i, j).
template <class T>
std::int64_t largest(
    const Pool& p, const T* x, std::int64_t n, std::int64_t i, std::int64_t j, std::int64_t c) {
  std::int64_t best = -1;
  for_each_cell(p, n, i, j, [&](std::int64_t at) {
    if (best < 0 || above(load(x[at + c]), load(x[best]))) {
      best = at + c;
    }
  });
  return best;
}

template <class T>
void max_pool(const Pool& p, const T* x, T* y) {
  for_each_output(p, [&](std::int64_t n, std::int64_t i, std::int64_t j) {
    T* out = y + p.output_pixel(n, i, j);
    for (std::int64_t c = 0; c < p.channels; ++c) out[c] = x[largest(p, x, n, i, j, c)];
  });
}

template <class T>
void avg_pool(const Pool& p, const T* x, T* y) {
  for_each_output(p, [&](std::int64_t n, std::int64_t i, std::int64_t j) {
    T* out = y + p.output_pixel(n, i, j);
    const double count = static_cast<double>(p.cells(i, j));
    for (std::int64_t c = 0; c < p.channels; ++c) {
      double sum = 0;
      for_each_cell(p, n, i, j, [&](std::int64_t at) { sum += load_sum(x[at + c]); });
      out[c] = store<T>(sum / count);
    }
  });
}

/// dx[pixel] = sum of share(output offset, i, j, pixel offset) over the windows with the pixel.
template <class T, class F>
void gather(const Pool& p, T* dx, F&& share) {
  const WindowAxis &h = p.window.height, &w = p.window.width;
  parallel_for(p.input_rows(), grain(p), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin * w.input * p.channels; at < end * w.input * p.channels; ++at) {
      const std::int64_t c = at % p.channels, column = at / p.channels % w.input;
      const std::int64_t row = at / p.channels / w.input;
      const std::int64_t n = row / h.input, r = row % h.input;
      Sum<T> sum{0};
      for (std::int64_t i = h.first_output(r); i < h.last_output(r); ++i) {
        for (std::int64_t j = w.first_output(column); j < w.last_output(column); ++j) {
          sum += share(p.output_pixel(n, i, j) + c, i, j, at);
        }
      }
      dx[at] = store<T>(sum);
    }
  });
}

/// `argmax` holds the offset of each window's maximum.
template <class T>
void max_pool_grad(const Pool& p, const T* x, const T* dy, T* dx, std::int64_t* argmax) {
  for_each_output(p, [&](std::int64_t n, std::int64_t i, std::int64_t j) {
    std::int64_t* out = argmax + p.output_pixel(n, i, j);
    for (std::int64_t c = 0; c < p.channels; ++c) out[c] = largest(p, x, n, i, j, c);
  });
  gather(p, dx, [&](std::int64_t output, std::int64_t, std::int64_t, std::int64_t cell) {
    return argmax[output] == cell ? load_sum(dy[output]) : Sum<T>{0};
  });
}

template <class T>
void avg_pool_grad(const Pool& p, const T* dy, T* dx) {
  gather(p, dx, [&](std::int64_t output, std::int64_t i, std::int64_t j, std::int64_t) {
    return load_sum(dy[output]) / static_cast<double>(p.cells(i, j));
  });
}

Pool pool_of(const NodeView& node, const Shape& x) {
  return {graph::ops::pool_window(node.attrs(), x), x[0], x[3]};
}

Prepared prepare_max_pool(const NodeView& node, const Capabilities&) {
  const Pool p = pool_of(node, node.input(0).shape);
  return dispatch_number(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([p](const Args& a) { max_pool<T>(p, a.in[0].as<T>(), a.out[0].as<T>()); });
  });
}

Prepared prepare_max_pool_grad(const NodeView& node, const Capabilities&) {
  const Pool p = pool_of(node, node.input(0).shape);
  const std::size_t workspace = static_cast<std::size_t>(p.outputs()) * sizeof(std::int64_t);
  return dispatch_number(node.output().dtype, [&]<class T>(Type<T>) {
    return launch(
        [p](const Args& a) {
          auto* argmax = static_cast<std::int64_t*>(static_cast<void*>(a.workspace));
          max_pool_grad<T>(p, a.in[0].as<T>(), a.in[2].as<T>(), a.out[0].as<T>(), argmax);
        },
        workspace);
  });
}

Prepared prepare_avg_pool(const NodeView& node, const Capabilities&) {
  const Pool p = pool_of(node, node.input(0).shape);
  return dispatch_floating(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([p](const Args& a) { avg_pool<T>(p, a.in[0].as<T>(), a.out[0].as<T>()); });
  });
}

Prepared prepare_avg_pool_grad(const NodeView& node, const Capabilities&) {
  const Pool p = pool_of(node, node.output().shape);
  return dispatch_floating(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([p](const Args& a) { avg_pool_grad<T>(p, a.in[1].as<T>(), a.out[0].as<T>()); });
  });
}

}  // namespace

std::vector<Kernel> pool_kernels() {
  return {
      {"MaxPool", "reference/max_pool", executable, prepare_max_pool},
      {"MaxPoolGrad", "reference/max_pool_grad", executable, prepare_max_pool_grad},
      {"AvgPool", "reference/avg_pool", executable, prepare_avg_pool},
      {"AvgPoolGrad", "reference/avg_pool_grad", executable, prepare_avg_pool_grad},
  };
}

}  // namespace halfstep::backend::cpu

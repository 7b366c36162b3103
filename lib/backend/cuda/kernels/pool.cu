#include "backend/cuda/kernels/pool.h"

#include <algorithm>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/element.h"

namespace halfstep::backend::cuda::kernels {
namespace {

/// Cells [first, last) of an axis.
struct Range {
  std::int64_t first;
  std::int64_t last;
};

/// The input cells under output `o`.
__device__ inline Range cells_of(const PoolAxis& a, std::int64_t o) {
  const std::int64_t begin = o * a.stride - a.pad_before;
  const std::int64_t end = begin + a.size;
  return {begin < 0 ? 0 : begin, end < a.input ? end : a.input};
}

/// The outputs whose windows cover input cell `i`.
__device__ inline Range outputs_of(const PoolAxis& a, std::int64_t i) {
  const std::int64_t at = i + a.pad_before;
  const std::int64_t first = at < a.size ? 0 : (at - a.size) / a.stride + 1;
  const std::int64_t last = at / a.stride + 1;
  return {first, last < a.output ? last : a.output};
}

/// The coordinates of element `i` of a [batch, height, width, channels] tensor.
struct Place {
  std::int64_t image, row, column, channel;
};

__device__ inline Place place_of(std::int64_t i,
                                 std::int64_t height,
                                 std::int64_t width,
                                 std::int64_t channels) {
  const std::int64_t pixel = i / channels;
  const std::int64_t line = pixel / width;
  return {line / height, line % height, pixel % width, i % channels};
}

__device__ inline std::int64_t input_at(const PoolGeometry& g,
                                        const Place& p,
                                        std::int64_t row,
                                        std::int64_t column) {
  return ((p.image * g.height.input + row) * g.width.input + column) * g.channels + p.channel;
}

__device__ inline std::int64_t output_at(const PoolGeometry& g,
                                         const Place& p,
                                         std::int64_t row,
                                         std::int64_t column) {
  return ((p.image * g.height.output + row) * g.width.output + column) * g.channels + p.channel;
}

__device__ inline Place output_place(const PoolGeometry& g, std::int64_t i) {
  return place_of(i, g.height.output, g.width.output, g.channels);
}

std::int64_t outputs(const PoolGeometry& g) {
  return g.batch * g.height.output * g.width.output * g.channels;
}
std::int64_t inputs(const PoolGeometry& g) {
  return g.batch * g.height.input * g.width.input * g.channels;
}

/// Offset of the first largest input element under an output; NaN is larger than every number.
template <class T>
__device__ inline std::int64_t largest(const PoolGeometry& g, const T* x, const Place& p) {
  const Range rows = cells_of(g.height, p.row);
  const Range columns = cells_of(g.width, p.column);
  std::int64_t best = input_at(g, p, rows.first, columns.first);
  Compute<T> best_value = load(x[best]);
  for (std::int64_t r = rows.first; r < rows.last; ++r) {
    for (std::int64_t c = columns.first; c < columns.last; ++c) {
      const std::int64_t at = input_at(g, p, r, c);
      const Compute<T> value = load(x[at]);
      if (!(value <= best_value) && best_value == best_value) {
        best = at;
        best_value = value;
      }
    }
  }
  return best;
}

template <class T>
__global__ void max_pool_kernel(PoolGeometry g, const T* x, T* y, std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    y[i] = x[largest(g, x, output_place(g, i))];
  }
}

template <class T>
__global__ void winners_kernel(PoolGeometry g,
                               const T* x,
                               std::int64_t* winners,
                               std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    winners[i] = largest(g, x, output_place(g, i));
  }
}

__device__ inline std::int64_t count(const Range& r) { return r.last - r.first; }

template <class T>
__global__ void avg_pool_kernel(PoolGeometry g, const T* x, T* y, std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const Place p = output_place(g, i);
    const Range rows = cells_of(g.height, p.row);
    const Range columns = cells_of(g.width, p.column);
    Compute<T> sum = 0;
    for (std::int64_t r = rows.first; r < rows.last; ++r) {
      // Row sums first, so that large windows have small rounding errors.
      Compute<T> row_sum = 0;
      for (std::int64_t c = columns.first; c < columns.last; ++c) {
        row_sum += load(x[input_at(g, p, r, c)]);
      }
      sum += row_sum;
    }
    y[i] = store<T>(sum / static_cast<Compute<T>>(count(rows) * count(columns)));
  }
}

/// dx[cell] = sum of share(output, its coordinates) over the outputs whose windows cover the cell.
template <class T, class Share>
__device__ inline void gather_gradient(const PoolGeometry& g, T* dx, std::int64_t i, Share share) {
  const Place p = place_of(i, g.height.input, g.width.input, g.channels);
  const Range rows = outputs_of(g.height, p.row);
  const Range columns = outputs_of(g.width, p.column);
  Sum<T> sum = 0;
  for (std::int64_t r = rows.first; r < rows.last; ++r) {
    for (std::int64_t c = columns.first; c < columns.last; ++c) {
      sum += share(output_at(g, p, r, c), r, c);
    }
  }
  dx[i] = store<T>(sum);
}

template <class T>
__global__ void max_pool_grad_kernel(
    PoolGeometry g, const T* dy, const std::int64_t* winners, T* dx, std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    gather_gradient(g, dx, i, [&](std::int64_t output, std::int64_t, std::int64_t) {
      return winners[output] == i ? load_sum(dy[output]) : Sum<T>(0);
    });
  }
}

template <class T>
__global__ void avg_pool_grad_kernel(PoolGeometry g, const T* dy, T* dx, std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    gather_gradient(g, dx, i, [&](std::int64_t output, std::int64_t r, std::int64_t c) {
      const std::int64_t cells = count(cells_of(g.height, r)) * count(cells_of(g.width, c));
      return load(dy[output]) / static_cast<Compute<T>>(cells);
    });
  }
}

}  // namespace

void max_pool(Stream stream, const PoolParams& p) {
  const std::int64_t elements = outputs(p.geometry);
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    launch(max_pool_kernel<T>,
           grid_of(elements),
           stream,
           p.geometry,
           static_cast<const T*>(p.x),
           static_cast<T*>(p.y),
           elements);
  });
}

void avg_pool(Stream stream, const PoolParams& p) {
  const std::int64_t elements = outputs(p.geometry);
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    launch(avg_pool_kernel<T>,
           grid_of(elements),
           stream,
           p.geometry,
           static_cast<const T*>(p.x),
           static_cast<T*>(p.y),
           elements);
  });
}

std::size_t max_pool_grad_workspace(const MaxPoolGradParams& p) {
  return static_cast<std::size_t>(outputs(p.geometry)) * sizeof(std::int64_t);
}

void max_pool_grad(Stream stream, const MaxPoolGradParams& p) {
  auto* winners = static_cast<std::int64_t*>(p.workspace);
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    const std::int64_t from = outputs(p.geometry);
    launch(winners_kernel<T>,
           grid_of(from),
           stream,
           p.geometry,
           static_cast<const T*>(p.x),
           winners,
           from);
    const std::int64_t to = inputs(p.geometry);
    launch(max_pool_grad_kernel<T>,
           grid_of(to),
           stream,
           p.geometry,
           static_cast<const T*>(p.dy),
           static_cast<const std::int64_t*>(winners),
           static_cast<T*>(p.dx),
           to);
  });
}

void avg_pool_grad(Stream stream, const AvgPoolGradParams& p) {
  const std::int64_t elements = inputs(p.geometry);
  dispatch_floating(p.dtype, [&]<class T>(Type<T>) {
    launch(avg_pool_grad_kernel<T>,
           grid_of(elements),
           stream,
           p.geometry,
           static_cast<const T*>(p.dy),
           static_cast<T*>(p.dx),
           elements);
  });
}

}  // namespace halfstep::backend::cuda::kernels

#include "backend/cuda/kernels/pool.h"

#include <algorithm>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

using graph::ops::WindowAxis;

/// Indices [first, last) along an axis.
struct Range {
  std::int64_t first;
  std::int64_t last;
};

/// The input indices in the window of output `o`, without padding.
__device__ inline Range input_range(const WindowAxis& a, std::int64_t o) {
  const std::int64_t begin = o * a.stride - a.pad_before;
  const std::int64_t end = begin + a.size;
  return {begin < 0 ? 0 : begin, end < a.input ? end : a.input};
}

/// The outputs whose windows contain input index `i`.
__device__ inline Range output_range(const WindowAxis& a, std::int64_t i) {
  const std::int64_t at = i + a.pad_before;
  const std::int64_t first = at < a.size ? 0 : (at - a.size) / a.stride + 1;
  const std::int64_t last = at / a.stride + 1;
  return {first, last < a.output ? last : a.output};
}

__device__ inline NhwcShape input_shape(const PoolGeometry& g) {
  return {g.height.input, g.width.input, g.channels};
}
__device__ inline NhwcShape output_shape(const PoolGeometry& g) {
  return {g.height.output, g.width.output, g.channels};
}

std::int64_t outputs(const PoolGeometry& g) {
  return g.batch * g.height.output * g.width.output * g.channels;
}
std::int64_t inputs(const PoolGeometry& g) {
  return g.batch * g.height.input * g.width.input * g.channels;
}

/// The first maximum of a window for each of `width` channels, and its pixel index: row * width of
/// the image + column. NaN is larger than every number.
template <int width, class T>
struct WindowMax {
  Pack<T, width> element;
  std::int32_t pixel[width];
};

template <int width, class T>
__device__ inline WindowMax<width, T> window_max(const PoolGeometry& g,
                                                 const T* x,
                                                 const NhwcCoordinate& p) {
  const Range rows = input_range(g.height, p.row);
  const Range columns = input_range(g.width, p.column);
  WindowMax<width, T> best;
  for (int k = 0; k < width; ++k) best.pixel[k] = -1;
  for (std::int64_t r = rows.first; r < rows.last; ++r) {
    for (std::int64_t c = columns.first; c < columns.last; ++c) {
      const auto values = load_pack<T, width>(x + input_shape(g).offset(p, r, c));
      for (int k = 0; k < width; ++k) {
        const Compute<T> value = load(values.element[k]);
        const Compute<T> old = best.pixel[k] < 0 ? value : load(best.element.element[k]);
        if (best.pixel[k] >= 0 && (value <= old || old != old)) continue;
        best.element.element[k] = values.element[k];
        best.pixel[k] = static_cast<std::int32_t>(r * g.width.input + c);
      }
    }
  }
  return best;
}

/// Elements are processed in packs of `width` channels.
template <int width>
__device__ inline NhwcCoordinate pack_coordinate(const PoolGeometry& g, std::int64_t i) {
  NhwcCoordinate p = NhwcShape{g.height.output, g.width.output, g.channels / width}.coordinate(i);
  p.channel *= width;
  return p;
}

template <int width, class T>
__global__ void max_pool_kernel(PoolGeometry g, const T* x, T* y, std::int64_t packs) {
  for (std::int64_t i = thread_of_grid(); i < packs; i += threads_of_grid()) {
    store_pack<T, width>(y + i * width,
                         window_max<width>(g, x, pack_coordinate<width>(g, i)).element);
  }
}

template <class T>
bool packs_fit(const PoolGeometry& g, std::initializer_list<const void*> tensors) {
  return g.channels % k_pack_width<T> == 0 &&
         std::all_of(tensors.begin(), tensors.end(), [](const void* x) { return aligned(x, 16); });
}

/// The pixel index of each window's maximum: row * width + column.
template <class T>
__global__ void argmax_kernel(PoolGeometry g,
                              const T* x,
                              std::int32_t* argmax,
                              std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    argmax[i] = window_max<1>(g, x, output_shape(g).coordinate(i)).pixel[0];
  }
}

__device__ inline std::int64_t count(const Range& r) { return r.last - r.first; }

template <class T>
__global__ void avg_pool_kernel(PoolGeometry g, const T* x, T* y, std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const NhwcCoordinate p = output_shape(g).coordinate(i);
    const Range rows = input_range(g.height, p.row);
    const Range columns = input_range(g.width, p.column);
    Compute<T> sum = 0;
    for (std::int64_t r = rows.first; r < rows.last; ++r) {
      // Row sums first, so that large windows have small rounding errors.
      Compute<T> row_sum = 0;
      for (std::int64_t c = columns.first; c < columns.last; ++c) {
        row_sum += load(x[input_shape(g).offset(p, r, c)]);
      }
      sum += row_sum;
    }
    y[i] = store<T>(sum / static_cast<Compute<T>>(count(rows) * count(columns)));
  }
}

/// dx[pixel] = sum of share(output, row, column) over the outputs whose windows contain the pixel.
template <class T, class Share>
__device__ inline void gather_gradient(
    const PoolGeometry& g, T* dx, const NhwcCoordinate& p, std::int64_t i, Share share) {
  const Range rows = output_range(g.height, p.row);
  const Range columns = output_range(g.width, p.column);
  Sum<T> sum = 0;
  for (std::int64_t r = rows.first; r < rows.last; ++r) {
    for (std::int64_t c = columns.first; c < columns.last; ++c) {
      sum += share(output_shape(g).offset(p, r, c), r, c);
    }
  }
  dx[i] = store<T>(sum);
}

template <class T>
__global__ void max_pool_grad_kernel(
    PoolGeometry g, const T* dy, const std::int32_t* argmax, T* dx, std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const NhwcCoordinate p = input_shape(g).coordinate(i);
    const auto pixel = static_cast<std::int32_t>(p.row * g.width.input + p.column);
    gather_gradient(g, dx, p, i, [&](std::int64_t output, std::int64_t, std::int64_t) {
      return argmax[output] == pixel ? load_sum(dy[output]) : Sum<T>(0);
    });
  }
}

/// The input indices that output `o` writes if windows are disjoint: those of its window, and the
/// following ones up to the next window or the end, which no window contains.
__device__ inline Range pixels_written(const WindowAxis& a, std::int64_t o) {
  const std::int64_t begin = o * a.stride - a.pad_before;
  const bool last = o + 1 == a.output;
  return {o == 0 ? 0 : begin, last ? a.input : begin + a.stride};
}

/// The gradient of disjoint windows: the thread of a window writes all its pixels, for `width`
/// channels.
template <int width, class T>
__global__ void max_pool_grad_disjoint_kernel(
    PoolGeometry g, const T* x, const T* dy, T* dx, std::int64_t packs) {
  for (std::int64_t i = thread_of_grid(); i < packs; i += threads_of_grid()) {
    const NhwcCoordinate p = pack_coordinate<width>(g, i);
    const WindowMax<width, T> max = window_max<width>(g, x, p);
    const auto g_out = load_pack<T, width>(dy + i * width);
    const Range all_rows = pixels_written(g.height, p.row);
    const Range all_columns = pixels_written(g.width, p.column);
    for (std::int64_t r = all_rows.first; r < all_rows.last; ++r) {
      for (std::int64_t c = all_columns.first; c < all_columns.last; ++c) {
        const auto pixel = static_cast<std::int32_t>(r * g.width.input + c);
        Pack<T, width> to;
        for (int k = 0; k < width; ++k) {
          to.element[k] = max.pixel[k] == pixel ? g_out.element[k] : T{};
        }
        store_pack<T, width>(dx + input_shape(g).offset(p, r, c), to);
      }
    }
  }
}

bool disjoint(const WindowAxis& a) { return a.stride >= a.size; }
bool disjoint(const PoolGeometry& g) { return disjoint(g.height) && disjoint(g.width); }

template <class T>
__global__ void avg_pool_grad_kernel(PoolGeometry g, const T* dy, T* dx, std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const NhwcCoordinate p = input_shape(g).coordinate(i);
    gather_gradient(g, dx, p, i, [&](std::int64_t output, std::int64_t r, std::int64_t c) {
      const std::int64_t pixels = count(input_range(g.height, r)) * count(input_range(g.width, c));
      return load(dy[output]) / static_cast<Compute<T>>(pixels);
    });
  }
}

}  // namespace

void max_pool(Stream stream, const PoolParams& p) {
  const std::int64_t elements = outputs(p.geometry);
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    constexpr int k_width = k_pack_width<T>;
    const bool packed = packs_fit<T>(p.geometry, {p.x, p.y});
    const std::int64_t packs = packed ? elements / k_width : elements;
    launch(packed ? max_pool_kernel<k_width, T> : max_pool_kernel<1, T>,
           grid_of(packs),
           stream,
           p.geometry,
           static_cast<const T*>(p.x),
           static_cast<T*>(p.y),
           packs);
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
  if (disjoint(p.geometry)) return 0;
  return static_cast<std::size_t>(outputs(p.geometry)) * sizeof(std::int32_t);
}

void max_pool_grad(Stream stream, const MaxPoolGradParams& p) {
  const PoolGeometry& g = p.geometry;
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    const T* x = static_cast<const T*>(p.x);
    const T* dy = static_cast<const T*>(p.dy);
    T* dx = static_cast<T*>(p.dx);
    const std::int64_t from = outputs(g);
    const std::int64_t to = inputs(g);
    if (disjoint(g)) {
      constexpr int k_width = k_pack_width<T>;
      const bool packed = packs_fit<T>(g, {x, dy, dx});
      const std::int64_t packs = packed ? from / k_width : from;
      const auto kernel =
          packed ? max_pool_grad_disjoint_kernel<k_width, T> : max_pool_grad_disjoint_kernel<1, T>;
      return launch(kernel, grid_of(packs), stream, g, x, dy, dx, packs);
    }
    auto* argmax = static_cast<std::int32_t*>(p.workspace);
    launch(argmax_kernel<T>, grid_of(from), stream, g, x, argmax, from);
    launch(max_pool_grad_kernel<T>,
           grid_of(to),
           stream,
           g,
           dy,
           static_cast<const std::int32_t*>(argmax),
           dx,
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

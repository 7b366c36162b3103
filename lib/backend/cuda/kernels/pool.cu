#include "backend/cuda/kernels/pool.h"

#include <algorithm>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

using graph::ops::WindowAxis;

/// Cells [first, last) of an axis.
struct Range {
  std::int64_t first;
  std::int64_t last;
};

/// The input cells under output `o`.
__device__ inline Range cells_of(const WindowAxis& a, std::int64_t o) {
  const std::int64_t begin = o * a.stride - a.pad_before;
  const std::int64_t end = begin + a.size;
  return {begin < 0 ? 0 : begin, end < a.input ? end : a.input};
}

/// The outputs whose windows cover input cell `i`.
__device__ inline Range outputs_of(const WindowAxis& a, std::int64_t i) {
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
  const Divided pixel = divide(i, channels);
  const Divided line = divide(pixel.quotient, width);
  const Divided image = divide(line.quotient, height);
  return {image.quotient, image.remainder, line.remainder, pixel.remainder};
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

/// The first largest input elements under an output, of `width` channels, and their cells: row *
/// width of the image + column. NaN is larger than every number.
template <int width, class T>
struct Largest {
  Pack<T, width> element;
  std::int32_t cell[width];
};

template <int width, class T>
__device__ inline Largest<width, T> largest_of(const PoolGeometry& g, const T* x, const Place& p) {
  const Range rows = cells_of(g.height, p.row);
  const Range columns = cells_of(g.width, p.column);
  Largest<width, T> best;
  for (int k = 0; k < width; ++k) best.cell[k] = -1;
  for (std::int64_t r = rows.first; r < rows.last; ++r) {
    for (std::int64_t c = columns.first; c < columns.last; ++c) {
      const auto values = load_pack<T, width>(x + input_at(g, p, r, c));
      for (int k = 0; k < width; ++k) {
        const Compute<T> value = load(values.element[k]);
        const Compute<T> old = best.cell[k] < 0 ? value : load(best.element.element[k]);
        if (best.cell[k] >= 0 && (value <= old || old != old)) continue;
        best.element.element[k] = values.element[k];
        best.cell[k] = static_cast<std::int32_t>(r * g.width.input + c);
      }
    }
  }
  return best;
}

/// Elements are processed in packs of `width` channels.
template <int width>
__device__ inline Place pack_place(const PoolGeometry& g, std::int64_t i) {
  Place p = place_of(i, g.height.output, g.width.output, g.channels / width);
  p.channel *= width;
  return p;
}

template <int width, class T>
__global__ void max_pool_kernel(PoolGeometry g, const T* x, T* y, std::int64_t packs) {
  for (std::int64_t i = thread_of_grid(); i < packs; i += threads_of_grid()) {
    store_pack<T, width>(y + i * width, largest_of<width>(g, x, pack_place<width>(g, i)).element);
  }
}

template <class T>
bool packs_fit(const PoolGeometry& g, std::initializer_list<const void*> tensors) {
  return g.channels % k_pack_width<T> == 0 &&
         std::all_of(tensors.begin(), tensors.end(), [](const void* x) { return aligned(x, 16); });
}

/// The largest cell of each window: row * width + column.
template <class T>
__global__ void winners_kernel(PoolGeometry g,
                               const T* x,
                               std::int32_t* winners,
                               std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    winners[i] = largest_of<1>(g, x, output_place(g, i)).cell[0];
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
__device__ inline void gather_gradient(
    const PoolGeometry& g, T* dx, const Place& p, std::int64_t i, Share share) {
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
    PoolGeometry g, const T* dy, const std::int32_t* winners, T* dx, std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const Place p = place_of(i, g.height.input, g.width.input, g.channels);
    const auto cell = static_cast<std::int32_t>(p.row * g.width.input + p.column);
    gather_gradient(g, dx, p, i, [&](std::int64_t output, std::int64_t, std::int64_t) {
      return winners[output] == cell ? load_sum(dy[output]) : Sum<T>(0);
    });
  }
}

/// The cells that the window `o` of an axis writes where windows do not overlap: its own, and those
/// up to the next window or the end, which no window covers.
__device__ inline Range cells_written(const WindowAxis& a, std::int64_t o) {
  const std::int64_t begin = o * a.stride - a.pad_before;
  const bool last = o + 1 == a.output;
  return {o == 0 ? 0 : begin, last ? a.input : begin + a.stride};
}

/// The gradient where windows do not overlap: each cell has one window, whose thread writes it, for
/// `width` channels.
template <int width, class T>
__global__ void max_pool_grad_apart_kernel(
    PoolGeometry g, const T* x, const T* dy, T* dx, std::int64_t packs) {
  for (std::int64_t i = thread_of_grid(); i < packs; i += threads_of_grid()) {
    const Place p = pack_place<width>(g, i);
    const Largest<width, T> largest = largest_of<width>(g, x, p);
    const auto g_out = load_pack<T, width>(dy + i * width);
    const Range all_rows = cells_written(g.height, p.row);
    const Range all_columns = cells_written(g.width, p.column);
    for (std::int64_t r = all_rows.first; r < all_rows.last; ++r) {
      for (std::int64_t c = all_columns.first; c < all_columns.last; ++c) {
        const auto cell = static_cast<std::int32_t>(r * g.width.input + c);
        Pack<T, width> to;
        for (int k = 0; k < width; ++k) {
          to.element[k] = largest.cell[k] == cell ? g_out.element[k] : T{};
        }
        store_pack<T, width>(dx + input_at(g, p, r, c), to);
      }
    }
  }
}

bool apart(const WindowAxis& a) { return a.stride >= a.size; }
bool apart(const PoolGeometry& g) { return apart(g.height) && apart(g.width); }

template <class T>
__global__ void avg_pool_grad_kernel(PoolGeometry g, const T* dy, T* dx, std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const Place p = place_of(i, g.height.input, g.width.input, g.channels);
    gather_gradient(g, dx, p, i, [&](std::int64_t output, std::int64_t r, std::int64_t c) {
      const std::int64_t cells = count(cells_of(g.height, r)) * count(cells_of(g.width, c));
      return load(dy[output]) / static_cast<Compute<T>>(cells);
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
  if (apart(p.geometry)) return 0;
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
    if (apart(g)) {
      constexpr int k_width = k_pack_width<T>;
      const bool packed = packs_fit<T>(g, {x, dy, dx});
      const std::int64_t packs = packed ? from / k_width : from;
      const auto kernel =
          packed ? max_pool_grad_apart_kernel<k_width, T> : max_pool_grad_apart_kernel<1, T>;
      return launch(kernel, grid_of(packs), stream, g, x, dy, dx, packs);
    }
    auto* winners = static_cast<std::int32_t*>(p.workspace);
    launch(winners_kernel<T>, grid_of(from), stream, g, x, winners, from);
    launch(max_pool_grad_kernel<T>,
           grid_of(to),
           stream,
           g,
           dy,
           static_cast<const std::int32_t*>(winners),
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

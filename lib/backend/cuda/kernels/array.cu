#include "backend/cuda/kernels/array.h"

#include <algorithm>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/map.h"

namespace halfstep::backend::cuda::kernels {
namespace {

template <class Word>
__global__ void copy_kernel(const Word* x, Word* y, Walk<2> walk) {
  for (std::int64_t i = thread_of_grid(); i < walk.elements; i += threads_of_grid()) {
    const auto at = walk.at(i);
    y[at.of[1]] = x[at.of[0]];
  }
}

template <class Word>
__global__ void fill_kernel(const Word* value, Word* y, std::int64_t elements) {
  const Word word = value == nullptr ? Word{0} : *value;
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) y[i] = word;
}

/// The extents of x and y along up to eight axes, outermost first.
struct TileAxes {
  int rank;
  std::int64_t x[Shape::k_max_rank];
  std::int64_t y[Shape::k_max_rank];
};

template <class Word>
__global__ void tile_kernel(TileAxes axes, const Word* x, Word* y, std::int64_t elements) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    std::int64_t rest = i;
    std::int64_t at = 0;
    std::int64_t step = 1;
    for (int axis = axes.rank - 1; axis >= 0; --axis) {
      at += rest % axes.y[axis] % axes.x[axis] * step;
      step *= axes.x[axis];
      rest /= axes.y[axis];
    }
    y[i] = x[at];
  }
}

__global__ void write_integers_kernel(WriteIntegersParams p) {
  for (std::size_t i = thread(); i < p.count; i += threads()) {
    if (p.dtype == DType::int64) {
      static_cast<std::int64_t*>(p.y)[i] = p.values[i];
    } else {
      static_cast<std::int32_t*>(p.y)[i] = static_cast<std::int32_t>(p.values[i]);
    }
  }
}

/// Indices of any integer dtype.
struct Indices {
  DType dtype;
  const void* data;

  __device__ std::int64_t operator[](std::int64_t i) const {
    switch (dtype) {
      case DType::int32:
        return static_cast<const std::int32_t*>(data)[i];
      case DType::int64:
        return static_cast<const std::int64_t*>(data)[i];
      case DType::uint8:
        return static_cast<const std::uint8_t*>(data)[i];
      case DType::float32:
        return static_cast<std::int64_t>(static_cast<const float*>(data)[i]);
      case DType::float64:
        return static_cast<std::int64_t>(static_cast<const double*>(data)[i]);
      case DType::float16:
        return static_cast<std::int64_t>(load(static_cast<const float16*>(data)[i]));
      default:
        return static_cast<std::int64_t>(load(static_cast<const bfloat16*>(data)[i]));
    }
  }
};

Indices indices_of(DType dtype, const void* data) {
  dispatch_number(dtype, []<class T>(Type<T>) {});
  return {dtype, data};
}

template <class Word>
__global__ void one_hot_kernel(
    Indices indices, const Word* on, const Word* off, Word* y, OneHotParams p) {
  const std::int64_t elements = p.outer * p.depth * p.inner;
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const std::int64_t place = i / p.inner % p.depth;
    const std::int64_t from = i / (p.inner * p.depth) * p.inner + i % p.inner;
    y[i] = indices[from] == place ? *on : *off;
  }
}

template <class Word>
__global__ void gather_kernel(Indices indices, const Word* x, Word* y, GatherParams p) {
  const std::int64_t elements = p.outer * p.count * p.inner;
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const std::int64_t row = i / p.inner;
    const std::int64_t at = indices[row % p.count];
    const bool exists = at >= 0 && at < p.extent;
    y[i] = exists ? x[(row / p.count * p.extent + at) * p.inner + i % p.inner] : Word{0};
  }
}

/// A thread sums the segments of one class (id modulo k_classes) in one column: enough threads for
/// a device, and the rows of every segment are added in their order.
constexpr std::int64_t k_classes = 64;

template <class T>
__global__ void segment_sum_kernel(
    Indices ids, const T* x, T* y, Sum<T>* sums, SegmentSumParams p) {
  for (std::int64_t t = thread_of_grid(); t < p.inner * k_classes; t += threads_of_grid()) {
    const std::int64_t column = t % p.inner;
    const std::int64_t mine = t / p.inner;
    for (std::int64_t s = mine; s < p.segments; s += k_classes) sums[s * p.inner + column] = 0;
    for (std::int64_t i = 0; i < p.rows; ++i) {
      const std::int64_t id = ids[i];
      if (id < 0 || id >= p.segments || id % k_classes != mine) continue;
      sums[id * p.inner + column] += load_sum(x[i * p.inner + column]);
    }
    for (std::int64_t s = mine; s < p.segments; s += k_classes) {
      y[s * p.inner + column] = store<T>(sums[s * p.inner + column]);
    }
  }
}

struct ResizedMatrices {
  static constexpr std::size_t k_most = 4;

  ResizedMatrix matrix[k_most];
};

/// One row of blocks per matrix.
__global__ void resize_kernel(ResizedMatrices batch) {
  const ResizedMatrix& m = batch.matrix[row()];
  const auto* x = static_cast<const std::uint16_t*>(m.x);
  auto* y = static_cast<std::uint16_t*>(m.y);
  for (std::int64_t i = thread_of_grid(); i < m.y_rows * m.y_columns; i += threads_of_grid()) {
    const Divided at = divide(i, m.y_columns);
    const bool inside = at.quotient < m.x_rows && at.remainder < m.x_columns;
    y[i] = inside ? x[at.quotient * m.x_columns + at.remainder] : std::uint16_t{0};
  }
}

}  // namespace

void copy(Stream stream, const CopyParams& p) {
  const Walk<2> walk(p.map.shape, {p.map.x_steps, p.map.y_steps});
  dispatch_word(p.element_bytes, [&]<class Word>(Type<Word>) {
    launch(copy_kernel<Word>,
           grid_of(walk.elements),
           stream,
           static_cast<const Word*>(p.x) + p.map.x_start,
           static_cast<Word*>(p.y) + p.map.y_start,
           walk);
  });
}

void fill(Stream stream, const FillParams& p) {
  dispatch_word(p.element_bytes, [&]<class Word>(Type<Word>) {
    launch(fill_kernel<Word>,
           grid_of(p.elements),
           stream,
           static_cast<const Word*>(p.value),
           static_cast<Word*>(p.y),
           p.elements);
  });
}

void tile(Stream stream, const TileParams& p) {
  TileAxes axes{static_cast<int>(p.x_shape.rank()), {}, {}};
  std::copy(p.x_shape.begin(), p.x_shape.end(), axes.x);
  std::copy(p.y_shape.begin(), p.y_shape.end(), axes.y);
  const std::int64_t elements = p.y_shape.elements();
  dispatch_word(p.element_bytes, [&]<class Word>(Type<Word>) {
    launch(tile_kernel<Word>,
           grid_of(elements),
           stream,
           axes,
           static_cast<const Word*>(p.x),
           static_cast<Word*>(p.y),
           elements);
  });
}

void write_integers(Stream stream, const WriteIntegersParams& p) {
  if (p.dtype != DType::int32 && p.dtype != DType::int64) refuse(p.dtype);
  launch(write_integers_kernel, Grid{.blocks = 1, .threads = 32}, stream, p);
}

void one_hot(Stream stream, const OneHotParams& p) {
  dispatch_word(p.element_bytes, [&]<class Word>(Type<Word>) {
    launch(one_hot_kernel<Word>,
           grid_of(p.outer * p.depth * p.inner),
           stream,
           indices_of(p.index, p.indices),
           static_cast<const Word*>(p.on),
           static_cast<const Word*>(p.off),
           static_cast<Word*>(p.y),
           p);
  });
}

void gather(Stream stream, const GatherParams& p) {
  dispatch_word(p.element_bytes, [&]<class Word>(Type<Word>) {
    launch(gather_kernel<Word>,
           grid_of(p.outer * p.count * p.inner),
           stream,
           indices_of(p.index, p.indices),
           static_cast<const Word*>(p.x),
           static_cast<Word*>(p.y),
           p);
  });
}

std::size_t segment_sum_workspace(const SegmentSumParams& p) {
  return static_cast<std::size_t>(p.segments * p.inner) * sizeof(double);
}

void segment_sum(Stream stream, const SegmentSumParams& p) {
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    launch(segment_sum_kernel<T>,
           grid_of(p.inner * k_classes, 64),
           stream,
           indices_of(p.index, p.ids),
           static_cast<const T*>(p.x),
           static_cast<T*>(p.y),
           static_cast<Sum<T>*>(p.workspace),
           p);
  });
}

void resize_matrices(Stream stream, std::span<const ResizedMatrix> matrices) {
  if (matrices.size() > ResizedMatrices::k_most)
    throw LaunchError("too many matrices for one launch");
  ResizedMatrices batch{};
  std::int64_t largest = 0;
  for (std::size_t n = 0; n < matrices.size(); ++n) {
    batch.matrix[n] = matrices[n];
    const std::int64_t elements = matrices[n].y_rows * matrices[n].y_columns;
    largest = elements > largest ? elements : largest;
  }
  Grid grid = grid_of(largest);
  grid.rows = static_cast<std::int64_t>(matrices.size());
  launch(resize_kernel, grid, stream, batch);
}

}  // namespace halfstep::backend::cuda::kernels

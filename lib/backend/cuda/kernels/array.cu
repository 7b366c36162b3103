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
    const std::int64_t category = i / p.inner % p.depth;
    const std::int64_t from = i / (p.inner * p.depth) * p.inner + i % p.inner;
    y[i] = indices[from] == category ? *on : *off;
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

/// The parts of the rows, and the classes of segments (id modulo `classes`).
struct SegmentPlan {
  std::int64_t parts, length, classes;

  explicit SegmentPlan(const SegmentSumParams& p) {
    // About as many partial sums as there are threads to add them, and 32 rows at least in a part.
    constexpr std::int64_t k_sums = 1 << 17, k_max_parts = 64, k_rows = 32;
    const std::int64_t sums = std::max<std::int64_t>(p.segments * p.inner, 1);
    const std::int64_t most = std::clamp<std::int64_t>(p.rows / k_rows, 1, k_max_parts);
    parts = std::clamp<std::int64_t>(k_sums / sums, 1, most);
    length = (p.rows + parts - 1) / parts;
    classes = parts == 1 ? 256 : 64;
  }
};

/// A thread sums the segments of one class in `width` columns over one part of the rows, which are
/// added in their order.
template <int width, class T>
__global__ void segment_sum_kernel(
    Indices ids, const T* x, Sum<T>* all_sums, SegmentSumParams p, SegmentPlan plan) {
  constexpr int k_in_flight = 8;
  const std::int64_t groups = p.inner / width;
  const std::int64_t count = groups * plan.classes * plan.parts;
  for (std::int64_t t = thread_of_grid(); t < count; t += threads_of_grid()) {
    const Divided of_class = divide(t, groups);
    const Divided of_part = divide(of_class.quotient, plan.classes);
    const std::int64_t column = of_class.remainder * width, mine = of_part.remainder;
    Sum<T>* sums = all_sums + of_part.quotient * p.segments * p.inner + column;
    for (std::int64_t s = mine; s < p.segments; s += plan.classes) {
      for (int i = 0; i < width; ++i) sums[s * p.inner + i] = 0;
    }
    const std::int64_t begin = of_part.quotient * plan.length;
    const std::int64_t end = std::min(begin + plan.length, p.rows);
    for (std::int64_t first = begin; first < end; first += k_in_flight) {
      std::int64_t id[k_in_flight];
      for (int n = 0; n < k_in_flight; ++n) id[n] = first + n < end ? ids[first + n] : -1;
      for (int n = 0; n < k_in_flight; ++n) {
        if (id[n] < 0 || id[n] >= p.segments) continue;
        // The classes are a power of two.
        if ((static_cast<std::uint64_t>(id[n]) & (plan.classes - 1U)) !=
            static_cast<std::uint64_t>(mine)) {
          continue;
        }
        const auto pack = load_pack<T, width>(x + (first + n) * p.inner + column);
        Sum<T>* to = sums + id[n] * p.inner;
        for (int i = 0; i < width; ++i) to[i] += load_sum(pack.element[i]);
      }
    }
  }
}

template <class T>
__global__ void segment_merge_kernel(const Sum<T>* sums,
                                     T* y,
                                     std::int64_t elements,
                                     std::int64_t parts) {
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    Sum<T> sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) sum += sums[part * elements + i];
    y[i] = store<T>(sum);
  }
}

struct ResizedMatrices {
  static constexpr std::size_t k_max = 4;

  ResizedMatrix matrix[k_max];
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
  return static_cast<std::size_t>(SegmentPlan(p).parts * p.segments * p.inner) * sizeof(double);
}

void segment_sum(Stream stream, const SegmentSumParams& p) {
  const SegmentPlan plan(p);
  dispatch_number(p.dtype, [&]<class T>(Type<T>) {
    auto* const sums = static_cast<Sum<T>*>(p.workspace);
    const auto run = [&]<int width>(std::integral_constant<int, width>) {
      launch(segment_sum_kernel<width, T>,
             grid_of(p.inner / width * plan.classes * plan.parts, 64),
             stream,
             indices_of(p.index, p.ids),
             static_cast<const T*>(p.x),
             sums,
             p,
             plan);
    };
    constexpr int k_width = 4;
    if (p.inner % k_width == 0 && aligned(p.x, k_width * sizeof(T))) {
      run(std::integral_constant<int, k_width>{});
    } else {
      run(std::integral_constant<int, 1>{});
    }
    const std::int64_t elements = p.segments * p.inner;
    launch(segment_merge_kernel<T>,
           grid_of(elements),
           stream,
           static_cast<const Sum<T>*>(sums),
           static_cast<T*>(p.y),
           elements,
           plan.parts);
  });
}

void resize_matrices(Stream stream, std::span<const ResizedMatrix> matrices) {
  if (matrices.size() > ResizedMatrices::k_max)
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

#include "backend/cuda/kernels/image.h"

#include <cmath>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/element.h"

namespace halfstep::backend::cuda::kernels {
namespace {

using Translation = graph::ops::ImageTranslation;

__device__ inline NhwcShape shape_of(const ImageBatch& b) {
  return {b.rows, b.columns, b.channels};
}

std::int64_t elements_of(const ImageBatch& b) { return b.batch * b.rows * b.columns * b.channels; }

template <class Word>
__global__ void flip_kernel(FlipParams p, std::int64_t elements) {
  const ImageBatch& b = p.images;
  const Word* x = static_cast<const Word*>(b.x);
  Word* y = static_cast<Word*>(b.y);
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const NhwcCoordinate to = shape_of(b).coordinate(i);
    const auto u = p.flip.draw.at(*b.ordinal, to.image);
    const bool up = p.flip.vertical && u.rows < 0.5F;
    const bool left = p.flip.horizontal && u.columns < 0.5F;
    y[i] = x[shape_of(b).offset(
        to, up ? b.rows - 1 - to.row : to.row, left ? b.columns - 1 - to.column : to.column)];
  }
}

/// The dtype of interpolation for pixels of T.
template <class T>
using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
__device__ inline T stored(Real<T> value) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    const float bounded = value < 0.0F ? 0.0F : (value > 255.0F ? 255.0F : value);
    return static_cast<T>(std::nearbyint(bounded));
  } else {
    return store<T>(value);
  }
}

template <class T>
__global__ void translation_kernel(TranslationParams p, std::int64_t elements) {
  const Translation& t = p.translation;
  const ImageBatch& b = p.images;
  const T* x = static_cast<const T*>(b.x);
  T* y = static_cast<T*>(b.y);
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const NhwcCoordinate to = shape_of(b).coordinate(i);
    const auto shift = t.shift(*b.ordinal, to.image, b.rows, b.columns);
    const auto v = t.neighbours(to.row, shift.down, b.rows);
    const auto h = t.neighbours(to.column, shift.right, b.columns);
    const auto pixel = [&](std::int64_t r, std::int64_t c) {
      if (r < 0 || c < 0) return static_cast<Real<T>>(t.fill_value);
      return static_cast<Real<T>>(load(x[shape_of(b).offset(to, r, c)]));
    };
    const auto line = [&](std::int64_t r) {
      return Translation::between(pixel(r, h.first), pixel(r, h.second), h.weight);
    };
    y[i] = stored<T>(Translation::between(line(v.first), line(v.second), v.weight));
  }
}

}  // namespace

void random_flip(Stream stream, const FlipParams& p) {
  const std::int64_t elements = elements_of(p.images);
  dispatch_word(size_bytes(p.images.dtype), [&]<class Word>(Type<Word>) {
    launch(flip_kernel<Word>, grid_of(elements), stream, p, elements);
  });
}

void random_translation(Stream stream, const TranslationParams& p) {
  const std::int64_t elements = elements_of(p.images);
  const auto run = [&]<class T>(Type<T>) {
    launch(translation_kernel<T>, grid_of(elements), stream, p, elements);
  };
  if (p.images.dtype == DType::uint8) return run(Type<std::uint8_t>{});
  dispatch_floating(p.images.dtype, run);
}

}  // namespace halfstep::backend::cuda::kernels

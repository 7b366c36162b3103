#include "backend/cuda/kernels/image.h"

#include <cmath>

#include "backend/cuda/kernels/device/dispatch.h"
#include "backend/cuda/kernels/device/element.h"
#include "core/philox.h"

namespace halfstep::backend::cuda::kernels {
namespace {

struct Uniforms {
  float rows;
  float columns;
};

/// Two uniforms in [0, 1) of sample n.
__device__ inline Uniforms uniforms(const ImageBatch& b, std::int64_t n) {
  const std::uint64_t key = mix(b.stream, static_cast<std::uint64_t>(*b.ordinal));
  const auto words = random_words(b.seed, key, static_cast<std::uint64_t>(b.first + n));
  return {to_uniform(words[0]), to_uniform(words[1])};
}

struct Place {
  std::int64_t image, row, column, channel;
};

__device__ inline Place place_of(const ImageBatch& b, std::int64_t i) {
  const std::int64_t pixel = i / b.channels;
  const std::int64_t line = pixel / b.columns;
  return {line / b.rows, line % b.rows, pixel % b.columns, i % b.channels};
}

__device__ inline std::int64_t at(const ImageBatch& b,
                                  const Place& p,
                                  std::int64_t row,
                                  std::int64_t column) {
  return ((p.image * b.rows + row) * b.columns + column) * b.channels + p.channel;
}

std::int64_t elements_of(const ImageBatch& b) { return b.batch * b.rows * b.columns * b.channels; }

template <class Word>
__global__ void flip_kernel(FlipParams p, std::int64_t elements) {
  const ImageBatch& b = p.images;
  const Word* x = static_cast<const Word*>(b.x);
  Word* y = static_cast<Word*>(b.y);
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const Place to = place_of(b, i);
    const Uniforms u = uniforms(b, to.image);
    const bool up = p.vertical && u.rows < 0.5F;
    const bool left = p.horizontal && u.columns < 0.5F;
    y[i] = x[at(
        b, to, up ? b.rows - 1 - to.row : to.row, left ? b.columns - 1 - to.column : to.column)];
  }
}

/// The cell in [0, size) that replaces cell `i`, or -1 for the fill value.
__device__ inline std::int64_t folded(std::int64_t i, std::int64_t size, FillMode fill) {
  if (i >= 0 && i < size) return i;
  if (fill == FillMode::constant) return -1;
  if (fill == FillMode::nearest) return i < 0 ? 0 : size - 1;
  const std::int64_t period = fill == FillMode::wrap ? size : 2 * size;
  const std::int64_t place = (i % period + period) % period;
  return place < size ? place : period - 1 - place;
}

/// Two neighbouring cells along an axis and the weight of the second.
struct Neighbours {
  std::int64_t first;
  std::int64_t second;
  float weight;
};

__device__ inline Neighbours neighbours(std::int64_t i,
                                        float shift,
                                        std::int64_t size,
                                        const TranslationParams& p) {
  const float from = static_cast<float>(i) - shift;
  const float low = std::floor(p.bilinear ? from : from + 0.5F);
  const auto cell = static_cast<std::int64_t>(low);
  return {
      folded(cell, size, p.fill), folded(cell + 1, size, p.fill), p.bilinear ? from - low : 0.0F};
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

/// A weight of 0 must not turn an infinite neighbour into NaN.
template <class R>
__device__ inline R between(R a, R b, float weight) {
  return weight == 0 ? a : a * (1 - weight) + b * weight;
}

template <class T>
__global__ void translation_kernel(TranslationParams p, std::int64_t elements) {
  const ImageBatch& b = p.images;
  const T* x = static_cast<const T*>(b.x);
  T* y = static_cast<T*>(b.y);
  for (std::int64_t i = thread_of_grid(); i < elements; i += threads_of_grid()) {
    const Place to = place_of(b, i);
    const Uniforms u = uniforms(b, to.image);
    const float down = p.height_low + (p.height_high - p.height_low) * u.rows;
    const float right = p.width_low + (p.width_high - p.width_low) * u.columns;
    const Neighbours v = neighbours(to.row, down * static_cast<float>(b.rows), b.rows, p);
    const Neighbours h = neighbours(to.column, right * static_cast<float>(b.columns), b.columns, p);
    const auto pixel = [&](std::int64_t r, std::int64_t c) {
      if (r < 0 || c < 0) return static_cast<Real<T>>(p.fill_value);
      return static_cast<Real<T>>(load(x[at(b, to, r, c)]));
    };
    const auto line = [&](std::int64_t r) {
      return between(pixel(r, h.first), pixel(r, h.second), h.weight);
    };
    y[i] = stored<T>(between(line(v.first), line(v.second), v.weight));
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

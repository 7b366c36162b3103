// Random flips and translations; draws and geometry in graph/ops/image.h. Interpolation in float
// (double for float64).

#include "graph/ops/image.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"

namespace halfstep::backend::cpu {
namespace {

using Translation = graph::ops::ImageTranslation;

/// Images per part, so that a part outweighs the cost of waking a thread.
std::int64_t grain(const Shape& x) { return rows_per_part(50'000, x.elements(1, 4)); }

template <class F>
Prepared dispatch_images(DType dtype, F&& f) {
  if (dtype == DType::uint8) return f(Type<std::uint8_t>{});
  return dispatch_floating(dtype, f);
}

Prepared prepare_flip(const NodeView& node, const Capabilities&) {
  const graph::ops::ImageFlip flip(node.attrs());
  const Shape shape = node.output().shape;
  return dispatch_images(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([=](const Args& a) {
      const std::int64_t rows = shape[1], columns = shape[2], channels = shape[3];
      const std::int64_t ordinal = *a.in[1].as<std::int64_t>();
      parallel_for_each(shape[0], grain(shape), [&](std::int64_t n) {
        const auto uniforms = flip.draw.at(ordinal, n);
        const bool up = flip.vertical && uniforms.rows < 0.5F;
        const bool left = flip.horizontal && uniforms.columns < 0.5F;
        const T* x = a.in[0].as<T>() + n * rows * columns * channels;
        T* y = a.out[0].as<T>() + n * rows * columns * channels;
        for (std::int64_t r = 0; r < rows; ++r) {
          const T* line = x + (up ? rows - 1 - r : r) * columns * channels;
          if (!left) {
            y = std::copy_n(line, columns * channels, y);
          } else if (channels == 1) {
            y = std::reverse_copy(line, line + columns, y);
          } else {
            for (std::int64_t c = columns; c-- > 0;) {
              y = std::copy_n(line + c * channels, channels, y);
            }
          }
        }
      });
    });
  });
}

/// The dtype of interpolation for pixels of T.
template <class T>
using Interpolation = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
T store_pixel(Interpolation<T> value) {
  if constexpr (std::is_same_v<T, std::uint8_t>) {
    return static_cast<T>(std::lrint(std::clamp(value, 0.0F, 255.0F)));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
void translate(
    const Translation& t, const Shape& shape, Translation::Shift shift, const T* x, T* y) {
  const std::int64_t rows = shape[1], columns = shape[2], channels = shape[3];
  using Real = Interpolation<T>;
  const auto pixel = [&](std::int64_t r, std::int64_t c, std::int64_t channel) {
    if (r < 0 || c < 0) return static_cast<Real>(t.fill_value);
    return static_cast<Real>(x[(r * columns + c) * channels + channel]);
  };
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto v = t.neighbours(r, shift.down, rows);
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto h = t.neighbours(c, shift.right, columns);
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        const auto row = [&](std::int64_t from) {
          return Translation::between(
              pixel(from, h.first, channel), pixel(from, h.second, channel), h.weight);
        };
        *y++ = store_pixel<T>(Translation::between(row(v.first), row(v.second), v.weight));
      }
    }
  }
}

Prepared prepare_translation(const NodeView& node, const Capabilities&) {
  const Translation t(node.attrs());
  const Shape shape = node.output().shape;
  return dispatch_images(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([t, shape](const Args& a) {
      const std::int64_t ordinal = *a.in[1].as<std::int64_t>();
      const std::int64_t size = shape.elements(1, 4);
      parallel_for_each(shape[0], grain(shape), [&](std::int64_t n) {
        translate<T>(t,
                     shape,
                     t.shift(ordinal, n, shape[1], shape[2]),
                     a.in[0].as<T>() + n * size,
                     a.out[0].as<T>() + n * size);
      });
    });
  });
}

}  // namespace

std::vector<Kernel> image_kernels() {
  return {
      {.op = "RandomFlip", .name = "reference/random_flip", .prepare = prepare_flip},
      {.op = "RandomTranslation",
       .name = "reference/random_translation",
       .prepare = prepare_translation},
  };
}

}  // namespace halfstep::backend::cpu

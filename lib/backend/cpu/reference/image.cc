// Random flips and translations. Sample n uses the random words at (seed, mix(stream, ordinal),
// first + n), where ranks below this one have `first` samples of the batch: word 0 for rows
// (vertical), word 1 for columns (horizontal). A translated pixel (r, c) reads the input at (r -
// down, c - right). Interpolation in float (double for float64); each neighbour outside of the
// image is mapped by fill_mode:
//   constant  k k | a b c d | k k      nearest  a a | a b c d | d d
//   reflect   b a | a b c d | d c      wrap     c d | a b c d | a b

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>

#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "core/philox.h"

namespace halfstep::backend::cpu {
namespace {

/// Images per part, so that a part is worth a thread.
std::int64_t grain(const Shape& x) { return rows_per_part(50'000, x.elements(1, 4)); }

/// The random draw of one batch; each sample uses its own words of it.
struct Draw {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::int64_t first = 0;

  explicit Draw(const graph::Attrs& attrs)
      : seed(static_cast<std::uint64_t>(attrs.get<std::int64_t>("seed"))),
        stream(static_cast<std::uint64_t>(attrs.get<std::int64_t>("stream"))),
        first(attrs.get<std::int64_t>("first")) {}

  /// Two uniforms in [0, 1) for sample n.
  std::array<float, 2> uniforms(std::int64_t ordinal, std::int64_t n) const {
    const auto words = random_words(seed,
                                    mix(stream, static_cast<std::uint64_t>(ordinal)),
                                    static_cast<std::uint64_t>(first + n));
    return {to_uniform(words[0]), to_uniform(words[1])};
  }
};

template <class F>
Prepared dispatch_images(DType dtype, F&& f) {
  if (dtype == DType::uint8) return f(Type<std::uint8_t>{});
  return dispatch_floating(dtype, f);
}

Prepared prepare_flip(const NodeView& node, const Capabilities&) {
  const Draw draw(node.attrs());
  const std::string& mode = node.attrs().get<std::string>("mode");
  const bool vertical = mode != "horizontal", horizontal = mode != "vertical";
  const Shape shape = node.output().shape;
  return dispatch_images(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([=](const Args& a) {
      const std::int64_t rows = shape[1], columns = shape[2], channels = shape[3];
      const std::int64_t ordinal = *a.in[1].as<std::int64_t>();
      parallel_for(shape[0], grain(shape), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t n = begin; n < end; ++n) {
          const auto uniform = draw.uniforms(ordinal, n);
          const bool up = vertical && uniform[0] < 0.5F;
          const bool left = horizontal && uniform[1] < 0.5F;
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
        }
      });
    });
  });
}

enum class Fill { constant, nearest, reflect, wrap };

Fill fill_named(std::string_view word) {
  if (word == "constant") return Fill::constant;
  if (word == "nearest") return Fill::nearest;
  return word == "reflect" ? Fill::reflect : Fill::wrap;
}

/// The cell in [0, size) that replaces cell `i`, or -1 for the fill value.
std::int64_t folded(std::int64_t i, std::int64_t size, Fill fill) {
  if (i >= 0 && i < size) return i;
  switch (fill) {
    case Fill::constant:
      return -1;
    case Fill::nearest:
      return i < 0 ? 0 : size - 1;
    case Fill::wrap:
      return (i % size + size) % size;
    case Fill::reflect: {
      const std::int64_t period = 2 * size;
      const std::int64_t at = (i % period + period) % period;
      return at < size ? at : period - 1 - at;
    }
  }
  return -1;
}

struct Translation {
  Draw draw;
  float height_low, height_high, width_low, width_high, fill_value;
  Fill fill;
  bool bilinear;
};

/// The dtype of interpolation for pixels of T.
template <class T>
using Interpolation = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Two neighbouring cells along an axis and the weight of the second.
struct Neighbours {
  std::array<std::int64_t, 2> cells{};
  float second = 0;
};

Neighbours neighbours(std::int64_t i, float shift, std::int64_t size, const Translation& t) {
  const float at = static_cast<float>(i) - shift;
  const float low = std::floor(t.bilinear ? at : at + 0.5F);
  const auto cell = static_cast<std::int64_t>(low);
  return {{folded(cell, size, t.fill), folded(cell + 1, size, t.fill)}, t.bilinear ? at - low : 0};
}

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
    const Translation& t, const Shape& shape, std::array<float, 2> shift, const T* x, T* y) {
  const std::int64_t rows = shape[1], columns = shape[2], channels = shape[3];
  using Real = Interpolation<T>;
  const auto pixel = [&](std::int64_t r, std::int64_t c, std::int64_t channel) {
    if (r < 0 || c < 0) return static_cast<Real>(t.fill_value);
    return static_cast<Real>(x[(r * columns + c) * channels + channel]);
  };
  const auto between = [](Real a, Real b, float second) {
    // A weight of 0 must not turn an infinite neighbour into NaN.
    return second == 0 ? a : a * (1 - second) + b * second;
  };
  for (std::int64_t r = 0; r < rows; ++r) {
    const Neighbours v = neighbours(r, shift[0], rows, t);
    for (std::int64_t c = 0; c < columns; ++c) {
      const Neighbours h = neighbours(c, shift[1], columns, t);
      for (std::int64_t channel = 0; channel < channels; ++channel) {
        const auto row = [&](std::int64_t from) {
          return between(
              pixel(from, h.cells[0], channel), pixel(from, h.cells[1], channel), h.second);
        };
        *y++ = store_pixel<T>(between(row(v.cells[0]), row(v.cells[1]), v.second));
      }
    }
  }
}

Prepared prepare_translation(const NodeView& node, const Capabilities&) {
  const graph::Attrs& attrs = node.attrs();
  const auto real = [&](std::string_view name) {
    return static_cast<float>(attrs.get<double>(name));
  };
  const Translation t{.draw = Draw(attrs),
                      .height_low = real("height_low"),
                      .height_high = real("height_high"),
                      .width_low = real("width_low"),
                      .width_high = real("width_high"),
                      .fill_value = real("fill_value"),
                      .fill = fill_named(attrs.get<std::string>("fill_mode")),
                      .bilinear = attrs.get<std::string>("interpolation") == "bilinear"};
  const Shape shape = node.output().shape;
  return dispatch_images(node.output().dtype, [&]<class T>(Type<T>) {
    return launch([t, shape](const Args& a) {
      const std::int64_t ordinal = *a.in[1].as<std::int64_t>();
      const std::int64_t size = shape.elements(1, 4);
      parallel_for(shape[0], grain(shape), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t n = begin; n < end; ++n) {
          const auto u = t.draw.uniforms(ordinal, n);
          const float down = t.height_low + (t.height_high - t.height_low) * u[0];
          const float right = t.width_low + (t.width_high - t.width_low) * u[1];
          translate<T>(t,
                       shape,
                       {down * static_cast<float>(shape[1]), right * static_cast<float>(shape[2])},
                       a.in[0].as<T>() + n * size,
                       a.out[0].as<T>() + n * size);
        }
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

#include "data/image.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/file.h"
#include "data/file_kind.h"

namespace halfstep::data {
namespace {

/// The source pixels of one pixel of a resized line, with their weights.
struct Taps {
  std::int64_t first = 0;
  std::vector<float> weights;  ///< their sum is 1
};

/// For each of `to` pixels those of `from` pixels that it is made of.
std::vector<Taps> triangle_taps(std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double radius = std::max(scale, 1.0);
  std::vector<Taps> taps(static_cast<std::size_t>(to));
  for (std::int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto first =
        std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(center - radius + 0.5)));
    const auto end = std::min(from, static_cast<std::int64_t>(std::floor(center + radius + 0.5)));
    Taps& tap = taps[static_cast<std::size_t>(i)];
    tap.first = first;
    double sum = 0;
    std::vector<double> weights;
    for (std::int64_t at = first; at < end; ++at) {
      const double distance = std::abs(static_cast<double>(at) + 0.5 - center) / radius;
      weights.push_back(std::max(0.0, 1 - distance));
      sum += weights.back();
    }
    for (const double weight : weights) tap.weights.push_back(static_cast<float>(weight / sum));
  }
  return taps;
}

Tensor with_channels(const Tensor& image, std::int64_t channels) {
  const Shape& shape = image.shape();
  Tensor converted(DType::uint8, {shape[0], shape[1], channels});
  const std::uint8_t* from = image.as<std::uint8_t>();
  std::uint8_t* to = converted.as<std::uint8_t>();
  for (std::int64_t i = 0, pixels = shape[0] * shape[1]; i < pixels; ++i) {
    if (channels == 3) {
      std::fill_n(to + 3 * i, 3, from[i]);
    } else {
      const std::uint8_t* rgb = from + 3 * i;
      to[i] = static_cast<std::uint8_t>((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
    }
  }
  return converted;
}

}  // namespace

bool is_image(const std::string& path) {
  constexpr std::size_t k_longest_signature = 18;
  const std::vector<std::byte> start = InputFile(path).start(k_longest_signature);
  return is_png(start) || is_jpeg(start) || is_bmp(start) || is_pnm(start);
}

Tensor read_image(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  if (is_png(bytes)) return read_png(bytes, path);
  if (is_jpeg(bytes)) return read_jpeg(bytes, path);
  if (is_bmp(bytes)) return read_bmp(bytes, path);
  if (is_pnm(bytes)) return read_pnm(bytes, path);
  throw wrong_file_kind(path, "an image that can be read (JPEG, PNG, BMP, PGM or PPM)", bytes);
}

UserError transparent(const std::string& path, std::string_view kind) {
  return {ErrorKind::data,
          in_file(path),
          fmt::format("is a {} image with transparent pixels, which can be shown on any background",
                      kind),
          "save it without transparency"};
}

Tensor read_image(const std::string& path, const ImageConversion& conversion) {
  return convert_image(read_image(path), conversion, path);
}

Tensor convert_image(Tensor image, const ImageConversion& conversion, const std::string& path) {
  const std::int64_t channels = image.shape()[2];
  if (conversion.channels != 0 && channels != conversion.channels) {
    if (!conversion.convert) {
      throw UserError(ErrorKind::data,
                      in_file(path),
                      fmt::format("has {} ({}), not {}",
                                  channels == 1 ? "1 channel" : "3 channels",
                                  channels == 1 ? "grey" : "colour",
                                  conversion.channels),
                      fmt::format("data.channels: {} converts images", conversion.channels));
    }
    image = with_channels(image, conversion.channels);
  }
  const std::int64_t height = conversion.height == 0 ? image.shape()[0] : conversion.height;
  const std::int64_t width = conversion.width == 0 ? image.shape()[1] : conversion.width;
  if (image.shape()[0] == height && image.shape()[1] == width) return image;
  if (conversion.resize == Resize::none) {
    throw UserError(ErrorKind::data,
                    in_file(path),
                    fmt::format("is an image of {} x {} pixels (height x width), not {} x {}",
                                image.shape()[0],
                                image.shape()[1],
                                height,
                                width),
                    "data.resize: crop or bilinear brings images to one size");
  }
  if (conversion.resize == Resize::crop) image = cropped_to(image, height, width);
  return resize_image(image, height, width);
}

void check_image_size(std::int64_t width, std::int64_t height, const std::string& path) {
  constexpr std::int64_t k_max = config::k_max_image_side;
  if (std::min(width, height) >= 1 && std::max(width, height) <= k_max) return;
  throw file_error(path, "has {} x {} pixels; 1 to {} a side can be read", width, height, k_max);
}

Tensor cropped_to(const Tensor& image, std::int64_t height, std::int64_t width) {
  const Shape& shape = image.shape();
  const std::int64_t rows = std::clamp<std::int64_t>(shape[1] * height / width, 1, shape[0]);
  const std::int64_t columns = std::clamp<std::int64_t>(shape[0] * width / height, 1, shape[1]);
  const std::int64_t top = (shape[0] - rows) / 2, left = (shape[1] - columns) / 2;
  Tensor part(DType::uint8, {rows, columns, shape[2]});
  for (std::int64_t y = 0; y < rows; ++y) {
    std::copy_n(image.as<std::uint8_t>() + ((top + y) * shape[1] + left) * shape[2],
                columns * shape[2],
                part.as<std::uint8_t>() + y * columns * shape[2]);
  }
  return part;
}

Tensor resize_image(const Tensor& image, std::int64_t height, std::int64_t width) {
  const Shape& shape = image.shape();
  const std::int64_t channels = shape[2];
  // Rows first: a line of the result needs the narrowed lines of several of the source.
  const std::vector<Taps> columns = triangle_taps(shape[1], width);
  std::vector<float> narrowed(static_cast<std::size_t>(shape[0] * width * channels));
  float* to = narrowed.data();
  for (std::int64_t y = 0; y < shape[0]; ++y) {
    const std::uint8_t* row = image.as<std::uint8_t>() + y * shape[1] * channels;
    for (const Taps& tap : columns) {
      for (std::int64_t c = 0; c < channels; ++c) {
        float sum = 0;
        const std::uint8_t* from = row + tap.first * channels + c;
        for (const float weight : tap.weights) {
          sum += weight * *from;
          from += channels;
        }
        *to++ = sum;
      }
    }
  }
  const std::vector<Taps> rows = triangle_taps(shape[0], height);
  const std::int64_t row_values = width * channels;
  Tensor resized(DType::uint8, {height, width, channels});
  std::uint8_t* out = resized.as<std::uint8_t>();
  for (const Taps& tap : rows) {
    for (std::int64_t x = 0; x < row_values; ++x) {
      float sum = 0;
      const float* from = narrowed.data() + tap.first * row_values + x;
      for (const float weight : tap.weights) {
        sum += weight * *from;
        from += row_values;
      }
      *out++ = static_cast<std::uint8_t>(std::clamp(std::lround(sum), 0L, 255L));
    }
  }
  return resized;
}

}  // namespace halfstep::data

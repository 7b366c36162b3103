#include "data/contact_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/error.h"

namespace halfstep::data {
namespace {

constexpr std::int64_t k_across = 10, k_max_lines = 20;
constexpr std::int64_t k_gap = 2;  // pixels around each sample
constexpr std::uint8_t k_background = 255;

/// The samples of each line.
std::vector<std::vector<std::int64_t>> lines_of(const Split& split, std::int64_t classes) {
  const bool by_class = split.labels.dtype() == DType::int32 && split.labels.shape().rank() == 1;
  const auto count = by_class ? std::min(classes, k_max_lines) : k_max_lines;
  std::vector<std::vector<std::int64_t>> lines(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < split.samples(); ++i) {
    const std::int64_t at = by_class ? split.labels.as<std::int32_t>()[i] : i / k_across;
    if (at < 0 || at >= count) continue;  // such as a label that the loss ignores
    std::vector<std::int64_t>& line = lines[static_cast<std::size_t>(at)];
    if (std::ssize(line) < k_across) line.push_back(i);
  }
  if (!by_class) std::erase_if(lines, [](const auto& line) { return line.empty(); });
  return lines;
}

/// Where the pixels of samples are in memory.
struct Pixels {
  const Tensor& samples;
  std::int64_t height, width, channels, shown;
  std::int64_t first;  ///< of the frame that is shown, within a sample

  explicit Pixels(const Tensor& images) : samples(images) {
    const Shape& shape = images.shape();
    const std::size_t rank = shape.rank();
    height = shape[rank - 3];
    width = shape[rank - 2];
    channels = shape[rank - 1];
    shown = channels == 3 ? 3 : 1;
    first = rank == 5 ? shape[1] / 2 * height * width * channels : 0;
  }
  float value(std::int64_t sample, std::int64_t y, std::int64_t x, std::int64_t channel) const {
    const std::int64_t size = samples.elements() / samples.shape()[0];
    const std::int64_t at = sample * size + first + (y * width + x) * channels + channel;
    return samples.dtype() == DType::uint8 ? static_cast<float>(samples.as<std::uint8_t>()[at])
                                           : samples.as<float>()[at];
  }
  template <class F>
  void each(F&& body) const {
    for (std::int64_t y = 0; y < height; ++y) {
      for (std::int64_t x = 0; x < width; ++x) {
        for (std::int64_t c = 0; c < shown; ++c) body(y, x, c);
      }
    }
  }
};

}  // namespace

Tensor contact_sheet(const Dataset& dataset) {
  const Tensor& images = dataset.train.images;
  if (images.shape().rank() < 4) {
    throw UserError(ErrorKind::data,
                    in_file(dataset.source),
                    fmt::format("has samples of shape {}, which are not images",
                                to_string(dataset.sample_shape)));
  }
  const Pixels pixels(images);
  const auto lines = lines_of(dataset.train, dataset.classes);
  float least = 0, most = 255;
  if (images.dtype() != DType::uint8) {
    least = std::numeric_limits<float>::infinity();
    most = -least;
    for (const auto& line : lines) {
      for (const std::int64_t sample : line) {
        pixels.each([&](auto... at) {
          least = std::min(least, pixels.value(sample, at...));
          most = std::max(most, pixels.value(sample, at...));
        });
      }
    }
  }
  const float scale = most > least ? 255 / (most - least) : 0;
  const std::int64_t down = pixels.height + k_gap, across = pixels.width + k_gap;
  Tensor sheet(DType::uint8,
               {std::ssize(lines) * down + k_gap, k_across * across + k_gap, pixels.shown});
  std::ranges::fill(sheet.span<std::uint8_t>(), k_background);
  for (std::size_t line = 0; line < lines.size(); ++line) {
    for (std::size_t i = 0; i < lines[line].size(); ++i) {
      const std::int64_t top = k_gap + static_cast<std::int64_t>(line) * down;
      const std::int64_t left = k_gap + static_cast<std::int64_t>(i) * across;
      pixels.each([&](std::int64_t y, std::int64_t x, std::int64_t c) {
        const float value = (pixels.value(lines[line][i], y, x, c) - least) * scale;
        const std::int64_t at = ((top + y) * sheet.shape()[1] + left + x) * pixels.shown + c;
        sheet.as<std::uint8_t>()[at] = static_cast<std::uint8_t>(value + 0.5F);
      });
    }
  }
  return sheet;
}

}  // namespace halfstep::data

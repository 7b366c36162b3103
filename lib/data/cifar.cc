#include <vector>

#include "core/parallel.h"
#include "data/dataset_registry.h"
#include "data/file.h"

namespace halfstep::data {
namespace {

constexpr std::int64_t k_cifar_side = 32;
constexpr std::int64_t k_colours = 3;
constexpr std::size_t k_plane = k_cifar_side * k_cifar_side;
constexpr std::size_t k_image = k_plane * k_colours;

}  // namespace

Split read_cifar(std::span<const std::string> paths, Cifar kind) {
  const std::size_t label_bytes = kind == Cifar::ten ? 1 : 2;
  const int classes = kind == Cifar::ten ? 10 : 100;
  const std::size_t record = label_bytes + k_image;
  std::uint64_t total = 0;
  for (const std::string& path : paths) {
    const std::uint64_t size = InputFile(path).size();
    if (size == 0) throw file_error(path, "is empty");
    if (size % record != 0) {
      throw file_error(path, "has {} bytes, not a whole number of {}-byte records", size, record);
    }
    total += size / record;
  }
  const auto samples = static_cast<std::int64_t>(total);
  Split split{Tensor(DType::uint8, {samples, k_cifar_side, k_cifar_side, k_colours}),
              Tensor(DType::int32, {samples})};
  std::uint8_t* image = split.images.as<std::uint8_t>();
  std::int32_t* label = split.labels.as<std::int32_t>();
  const std::uint8_t* last = image + split.images.bytes();
  for (const std::string& path : paths) {
    const std::vector<std::byte> bytes = read_file(path);
    const std::size_t records = bytes.size() / record;
    if (bytes.size() % record != 0 || records * k_image > static_cast<std::size_t>(last - image)) {
      throw file_error(path, "changed while it was read");
    }
    for (std::size_t i = 0; i < records; ++i) {
      label[i] = std::to_integer<std::int32_t>(bytes[i * record + label_bytes - 1]);
      if (label[i] >= classes) {
        throw file_error(
            path, "has label {} at record {}; it must be below {}", label[i], i, classes);
      }
    }
    const auto interleave = [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
        const std::byte* planes = bytes.data() + i * record + label_bytes;
        std::uint8_t* to = image + i * k_image;
        for (std::size_t pixel = 0; pixel < k_plane; ++pixel) {
          for (std::size_t c = 0; c < k_colours; ++c) {
            to[pixel * k_colours + c] = std::to_integer<std::uint8_t>(planes[c * k_plane + pixel]);
          }
        }
      }
    };
    parallel_for(static_cast<std::int64_t>(records), 256, interleave);
    image += records * k_image;
    label += records;
  }
  return split;
}

}  // namespace halfstep::data

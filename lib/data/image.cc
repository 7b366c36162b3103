#include "data/image.h"

#include <algorithm>
#include <array>

#include "data/file.h"
#include "data/file_kind.h"
#include "data/image_formats.h"

namespace halfstep::data {

bool is_image(const std::string& path) {
  const InputFile file(path);
  std::array<std::byte, 8> start{};
  const std::span<std::byte> there =
      std::span(start).first(std::min<std::uint64_t>(file.size(), start.size()));
  file.read(0, there);
  return is_png(there) || is_pnm(there);
}

Tensor read_image(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  if (is_png(bytes)) return read_png(bytes, path);
  if (is_pnm(bytes)) return read_pnm(bytes, path);
  throw wrong_kind(path, "a picture that can be read (PGM, PPM or PNG)", bytes);
}

}  // namespace halfstep::data

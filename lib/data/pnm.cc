// Source: Netpbm, "PGM" and "PPM" format pages.

#include <charconv>
#include <string_view>

#include "data/file.h"
#include "data/image.h"

namespace halfstep::data {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The numbers of a PNM file: text with '#' comments.
class Scanner {
 public:
  Scanner(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  int number(std::string_view what) {
    while (at_ < text_.size() && (is_space(text_[at_]) || text_[at_] == '#')) {
      if (text_[at_] == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        ++at_;
      }
    }
    int value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{} || value < 0) throw file_error(path_, "has no valid {}", what);
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }
  /// The data after the single whitespace character that ends the header.
  std::string_view rest() const { return text_.substr(std::min(at_ + 1, text_.size())); }

 private:
  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 2;
};

std::uint8_t scaled(int value, int largest) {
  return static_cast<std::uint8_t>((value * 255 + largest / 2) / largest);
}

}  // namespace

bool is_pnm(std::span<const std::byte> start) {
  if (start.size() < 3 || start[0] != std::byte{'P'}) return false;
  const auto kind = std::to_integer<char>(start[1]);
  const auto next = std::to_integer<char>(start[2]);
  return (kind == '2' || kind == '3' || kind == '5' || kind == '6') &&
         (is_space(next) || next == '#');
}

Tensor read_pnm(std::span<const std::byte> bytes, const std::string& path) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Scanner scanner(text, path);
  const bool binary = text[1] >= '5';
  const std::int64_t colours = text[1] == '3' || text[1] == '6' ? 3 : 1;
  const int width = scanner.number("width");
  const int height = scanner.number("height");
  const int largest = scanner.number("largest value");
  check_image_size(width, height, path);
  if (largest < 1 || largest > 255) {
    throw file_error(path, "has values up to {}; 1 to 255 can be read", largest);
  }
  const std::int64_t values = std::int64_t{width} * height * colours;
  const std::string_view rest = scanner.rest();
  // In the text format a value takes at least a digit and a separator, except the last.
  const auto most = static_cast<std::int64_t>(binary ? rest.size() : rest.size() / 2 + 1);
  if (values > most || (binary && values < most)) {
    throw file_error(path,
                     "has {} bytes of values, not what {} x {} x {} need",
                     rest.size(),
                     height,
                     width,
                     colours);
  }
  Tensor image(DType::uint8, {height, width, colours});
  for (std::int64_t i = 0; i < values; ++i) {
    const int value = binary ? static_cast<unsigned char>(rest[static_cast<std::size_t>(i)])
                             : scanner.number("value");
    if (value > largest) throw file_error(path, "has value {} above {}", value, largest);
    image.as<std::uint8_t>()[i] = scaled(value, largest);
  }
  return image;
}

}  // namespace halfstep::data

#include "data/file_kind.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "data/file.h"
#include "data/image.h"

namespace halfstep::data {
namespace {

using namespace std::string_view_literals;

struct Signature {
  std::string_view start;
  std::string_view name;
  std::string_view remedy;
};

constexpr std::string_view k_save_as_npz =
    "numpy.savez('data.npz', x_train=images, y_train=labels) makes a file for format: npz";
constexpr std::string_view k_convert_images =
    "'magick image.gif image.png' makes an image that can be read";
constexpr std::string_view k_folder_of_images =
    "format: image_folder reads a folder of images sorted by class";

constexpr std::array k_signatures{
    Signature{"\xFF\xD8\xFF"sv, "a JPEG image", k_folder_of_images},
    Signature{"\x89PNG"sv, "a PNG image", k_folder_of_images},
    Signature{"GIF8"sv, "a GIF image", k_convert_images},
    Signature{"\x93NUMPY"sv, "one NumPy array (.npy)", k_save_as_npz},
    Signature{"PK\x03\x04"sv, "a ZIP archive, as NPZ files are", "format: npz reads NPZ files"},
    Signature{"\x89HDF"sv, "an HDF5 file", k_save_as_npz},
    Signature{"PAR1"sv, "a Parquet file", k_save_as_npz},
    Signature{"\x80\x04"sv, "a Python pickle", k_save_as_npz},
    Signature{"\x80\x02"sv, "a Python pickle", k_save_as_npz},
    Signature{"%PDF"sv, "a PDF document", ""},
    Signature{"\x1F\x8B"sv, "a gzip file", "gunzip shows its contents"},
    Signature{"\0\0\x08"sv, "an IDX file", "format: idx reads a folder of IDX files"},
};

bool is_text(std::string_view bytes) {
  return !bytes.empty() && std::ranges::all_of(bytes, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  });
}

}  // namespace

FileKind file_kind(std::span<const std::byte> start) {
  start = start.first(std::min(start.size(), k_kind_bytes));
  const std::string_view bytes(reinterpret_cast<const char*>(start.data()), start.size());
  for (const Signature& signature : k_signatures) {
    if (bytes.starts_with(signature.start)) {
      return {std::string(signature.name), std::string(signature.remedy)};
    }
  }
  if (is_bmp(start)) return {"a BMP image", std::string(k_folder_of_images)};
  if (!is_text(bytes)) return {};
  const std::size_t first = bytes.find_first_not_of(" \r\n\t");
  if (first != std::string_view::npos && bytes[first] == '<') {
    return {"a web page, perhaps of a failed download", ""};
  }
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  if (line.find_first_of(",;\t") == std::string_view::npos) return {"text", ""};
  return {"text, perhaps CSV", "format: csv reads tables"};
}

UserError wrong_file_kind(const std::string& path,
                          std::string_view wanted,
                          std::span<const std::byte> start) {
  const FileKind kind = file_kind(start);
  std::string message = fmt::format("is not {}", wanted);
  if (kind.name.empty()) {
    message += start.empty() ? ": it is empty" : ": it starts with";
    for (const std::byte b : start.first(std::min<std::size_t>(4, start.size()))) {
      message += fmt::format(" {:02x}", std::to_integer<unsigned>(b));
    }
  } else {
    message += " but " + kind.name;
  }
  return UserError(ErrorKind::data, in_file(path), std::move(message), kind.remedy);
}

FileKind file_kind_of(const std::string& path) {
  try {
    return file_kind(InputFile(path).start(k_kind_bytes));
  } catch (const UserError&) {
    return {};
  }
}

}  // namespace halfstep::data

#pragma once
// Names of file formats by their first bytes, for messages about files of the wrong kind.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace halfstep::data {

/// As many bytes of the start of a file as file_kind uses.
inline constexpr std::size_t k_kind_bytes = 64;

struct FileKind {
  std::string name;    ///< "a JPEG image"; "" when not known
  std::string remedy;  ///< how to convert it to a file that can be read; "" when not known
};

/// The format of a file that starts with these bytes.
FileKind file_kind(std::span<const std::byte> start);

/// "is not WANTED but a JPEG image"; quotes the first bytes where the format is unknown.
UserError wrong_file_kind(const std::string& path,
                          std::string_view wanted,
                          std::span<const std::byte> start);

/// The format of a file; nothing known of one that cannot be read.
FileKind file_kind_of(const std::string& path);

}  // namespace halfstep::data

#pragma once

#include <string>
#include <string_view>

namespace halfstep::report {

/// Text escaped for XML and HTML, in elements and in quoted attributes; control characters, which
/// XML does not allow, become spaces.
inline std::string xml_text(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace halfstep::report

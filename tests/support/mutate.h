#pragma once
// Random changes to the bytes of a file.

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <string_view>

namespace halfstep::test {

/// One to four random changes: bytes replaced, removed, inserted or repeated, one of `tokens`
/// (tokens with a meaning in the format) inserted, a run of bytes set to 0 or 255, the end
/// truncated.
inline std::string damaged(std::string text,
                           std::mt19937& random,
                           std::span<const std::string_view> tokens) {
  const auto below = [&random](std::size_t n) { return n == 0 ? 0 : random() % n; };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = below(text.size() + 1);
    switch (below(8)) {
      case 0:
        text.insert(at, tokens.empty() ? "" : tokens[below(tokens.size())]);
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.insert(at, text.substr(below(text.size()), 1 + below(40)));
        break;
      case 3:
        for (std::size_t i = at; i < std::min(text.size(), at + 1 + below(8)); ++i)
          text[i] = '\xff';
        break;
      case 4:
        for (std::size_t i = at; i < std::min(text.size(), at + 1 + below(8)); ++i) text[i] = '\0';
        break;
      case 5:
        if (below(4) == 0) text.resize(at);
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
    }
  }
  return text;
}

}  // namespace halfstep::test

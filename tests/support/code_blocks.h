#pragma once
// The code of Markdown pages, for tests that run it.

#include <string>
#include <vector>

namespace halfstep::test {

/// The contents of the blocks of a page that are fenced with the name of a language.
inline std::vector<std::string> code_blocks(const std::string& page, const std::string& language) {
  const std::string fence = "\n```" + language + "\n";
  std::vector<std::string> blocks;
  for (std::size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at + 1)) {
    const std::size_t text = at + fence.size();
    blocks.push_back(page.substr(text, page.find("\n```", text) + 1 - text));
  }
  return blocks;
}

}  // namespace halfstep::test

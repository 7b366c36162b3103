#include "backend/cuda/vendor/real/choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

#include "core/parse_number.h"

namespace halfstep::backend::cuda::real {
namespace {

/// A file name of letters, digits, dots and underscores.
std::string file_name(const std::string& text) {
  std::string name = text;
  std::replace_if(
      name.begin(),
      name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.'; },
      '_');
  return name;
}

}  // namespace

Choices::Choices(const std::string& folder, const std::string& gpu, const std::string& versions) {
  if (folder.empty()) return;
  path_ = (std::filesystem::path(folder) / file_name(gpu + "_" + versions + ".txt")).string();
  std::ifstream file(path_);
  // A line is "candidate key"; the last line of a key is valid.
  for (std::string line; std::getline(file, line);) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos) continue;
    if (const auto candidate = parse_number<std::size_t>(line.substr(0, space))) {
      candidates_[line.substr(space + 1)] = *candidate;
    }
  }
}

std::optional<std::size_t> Choices::find(const std::string& key) const {
  const auto it = candidates_.find(key);
  if (it == candidates_.end()) return std::nullopt;
  return it->second;
}

void Choices::remember(const std::string& key, std::size_t candidate) {
  candidates_[key] = candidate;
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
  // One short write, so that lines of concurrent processes do not interleave.
  std::ofstream(path_, std::ios::app) << fmt::format("{} {}\n", candidate, key) << std::flush;
}

}  // namespace halfstep::backend::cuda::real

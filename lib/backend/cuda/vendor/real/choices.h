#pragma once
// The fastest candidate for each key: measured once per GPU and library versions, then read from a
// file.

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace halfstep::backend::cuda::real {

class Choices {
 public:
  /// The file for a GPU and library versions in `folder`; with "" choices are kept for this process
  /// only. Lines that cannot be parsed are ignored, as is a file that cannot be read.
  Choices(const std::string& folder, const std::string& gpu, const std::string& versions);

  std::optional<std::size_t> find(const std::string& key) const;
  /// Appends to the file; a write error only means that the next process measures again.
  void remember(const std::string& key, std::size_t candidate);

 private:
  std::string path_;
  std::map<std::string, std::size_t> candidates_;
};

}  // namespace halfstep::backend::cuda::real

#pragma once
// Which of the candidates for a key was the fastest: measured once per GPU and library versions,
// then read from a file.

#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace halfstep::backend::cuda::real {

class Choices {
 public:
  /// The file for a GPU and library versions in `folder`; "" remembers for this process alone.
  /// A file that cannot be read or has broken lines counts as far as it can be read.
  Choices(const std::string& folder, const std::string& gpu, const std::string& versions);

  std::optional<std::size_t> find(const std::string& key) const;
  /// Appends to the file; one that cannot be written costs only the next measurement.
  void remember(const std::string& key, std::size_t candidate);

 private:
  std::string path_;
  std::map<std::string, std::size_t> candidates_;
};

}  // namespace halfstep::backend::cuda::real

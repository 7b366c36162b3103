#pragma once
// Helpers of the tests of configs.

#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"
#include "config/run_spec.h"
#include "core/error.h"
#include "support/paths.h"

namespace halfstep::config::testing {

inline std::filesystem::path folder() { return test::source_dir() / "tests" / "config"; }

inline std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The lines of a UserError's text for the problems of a Diagnostics; empty when there are none.
inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> result;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) result.push_back(line);
  return result;
}

inline std::vector<std::string> problems(const Diagnostics& diagnostics) {
  try {
    diagnostics.throw_if_any();
  } catch (const UserError& error) {
    return lines(error.what());
  }
  return {};
}

/// Reads `text`, which must have no problem.
inline Node node_of(std::string_view text, const LoadOptions& options = {}) {
  Diagnostics diagnostics;
  Node node = load_text(text, "c.yaml", diagnostics, options);
  diagnostics.throw_if_any();
  return node;
}

inline RunSpec spec_of(const Node& node) {
  Diagnostics diagnostics;
  RunSpec spec = parse_run_spec(node, diagnostics);
  diagnostics.throw_if_any();
  return spec;
}

/// Everything that is wrong with a config, one line a problem.
inline std::vector<std::string> check_text(std::string_view text, const std::string& file) {
  try {
    Diagnostics diagnostics;
    const Node node = load_text(text, file, diagnostics);
    parse_run_spec(node, diagnostics);
    return problems(diagnostics);
  } catch (const UserError& error) {
    return lines(error.what());
  }
}

inline std::vector<std::filesystem::path> files_of(std::string_view name) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder() / name)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  return files;
}

}  // namespace halfstep::config::testing

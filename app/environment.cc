#include "environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/warning_codes.h"
#include "core/parse_number.h"
#include "core/ranges.h"

namespace halfstep::app {

namespace fs = std::filesystem;

std::optional<std::string> environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<std::int64_t> environment_number(std::string_view name) {
  const auto text = environment(name);
  return text ? parse_number<std::int64_t>(*text) : std::nullopt;
}

std::map<std::string, std::string> environment_with_prefix(std::string_view prefix) {
  std::map<std::string, std::string> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(prefix) || equals == std::string_view::npos) continue;
    if (equals + 1 == text.size()) continue;
    found.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return found;
}

std::vector<std::string> command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::vector<config::Override> environment_overrides() {
  struct EnvironmentKey {
    std::string_view variable;
    std::string_view path;
  };
  static constexpr EnvironmentKey k_keys[]{{"HALFSTEP_DEVICE", "device"},
                                           {"HALFSTEP_THREADS", "device.threads"}};
  std::vector<config::Override> overrides;
  for (const EnvironmentKey& key : k_keys) {
    if (const auto value = environment(key.variable)) {
      overrides.push_back(
          {config::Override::Kind::set, std::string(key.path), *value, std::string(key.variable)});
    }
  }
  return overrides;
}

std::vector<config::Warning> unknown_variables() {
  static const std::vector<std::string> k_known{"HALFSTEP_CUDA_PLUGIN",
                                                "HALFSTEP_DATA",
                                                "HALFSTEP_DEVICE",
                                                "HALFSTEP_LOG_LEVEL",
                                                "HALFSTEP_MAX_ISA",
                                                "HALFSTEP_MPI",
                                                "HALFSTEP_RUN_DIR",
                                                "HALFSTEP_THREADS"};
  std::vector<config::Warning> warnings;
  for (const auto& [variable, value] : environment_with_prefix("HALFSTEP_")) {
    if (contains(k_known, variable)) continue;
    const std::string hint = did_you_mean(variable, k_known);
    warnings.push_back(
        config::warning(config::k_idle_variable,
                        {variable, 0, 0, ""},
                        fmt::format("is not a variable of halfstep{}",
                                    hint.empty() ? "" : fmt::format(" ({})", hint))));
  }
  return warnings;
}

LogLevel environment_log_level() {
  const auto word = environment("HALFSTEP_LOG_LEVEL");
  if (!word) return LogLevel::info;
  static constexpr std::array k_levels{config::Named{LogLevel::error, "error"},
                                       config::Named{LogLevel::warning, "warning"},
                                       config::Named{LogLevel::info, "info"},
                                       config::Named{LogLevel::debug, "debug"}};
  if (const auto level = config::value_named(*word, k_levels)) return *level;
  throw UserError(ErrorKind::config,
                  {"HALFSTEP_LOG_LEVEL", 0, 0, ""},
                  fmt::format("must be error, warning, info or debug, got '{}'", *word));
}

std::vector<std::string> data_search_paths(const std::string& config_path) {
  std::vector<std::string> paths;
  if (const auto data = environment("HALFSTEP_DATA")) paths.push_back(*data);
  std::error_code error;
  fs::path folder = fs::absolute(fs::path(config_path), error).parent_path();
  for (; !folder.empty(); folder = folder.parent_path()) {
    if (fs::is_directory(folder / "datasets", error))
      paths.push_back((folder / "datasets").string());
    if (folder == folder.root_path()) break;
  }
  if (fs::is_directory("datasets", error))
    paths.push_back(fs::absolute("datasets", error).string());
  paths.emplace_back("/usr/share/datasets");
  return paths;
}

}  // namespace halfstep::app

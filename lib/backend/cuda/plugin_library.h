#pragma once
// The CUDA plugin: search paths and the opened library.

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "backend/cuda/boundary.h"

namespace halfstep::backend::cuda {

/// The search for a plugin.
struct PluginSearch {
  std::string given;                 ///< an explicit file; "": search the folders
  std::vector<std::string> folders;  ///< the first one that contains k_plugin_file is used
};

constexpr std::string_view k_plugin_file = "libhalfstep_cuda.so";

/// The folders relative to a program at `executable` in which a plugin is installed.
std::vector<std::string> plugin_folders(const std::string& executable);

/// Why a component is unavailable, and how to fix it.
struct Absence {
  std::string reason;
  std::string remedy;
};

/// An opened plugin; closed with its last owner.
class PluginLibrary {
 public:
  PluginLibrary(std::string path, void* handle, const boundary::Table& table);
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;
  ~PluginLibrary();

  const std::string& path() const { return path_; }
  const boundary::Table& table() const { return table_; }

 private:
  std::string path_;
  void* handle_;
  const boundary::Table& table_;
};

/// Opens the plugin, or returns why it is unavailable.
std::variant<std::shared_ptr<PluginLibrary>, Absence> open_plugin(const PluginSearch& search);

}  // namespace halfstep::backend::cuda

#pragma once
// The CUDA plugin: where it is looked for, and its opened library.

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "backend/cuda/boundary.h"

namespace halfstep::backend::cuda {

/// Where to look for a plugin.
struct PluginSearch {
  std::string given;                 ///< a file that was named; "" looks in the folders
  std::vector<std::string> folders;  ///< the first one that has k_plugin_file wins
};

constexpr std::string_view k_plugin_file = "libhalfstep_cuda.so";

/// The folders beside a program at `executable` where a plugin is installed.
std::vector<std::string> plugin_folders(const std::string& executable);

/// Why something of the machine is not there, and what would help.
struct Absence {
  std::string reason;
  std::string remedy;
};

/// An opened plugin; closed when its last owner goes.
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

/// Opens the plugin, or says why there is none.
std::variant<std::shared_ptr<PluginLibrary>, Absence> open_plugin(const PluginSearch& search);

}  // namespace halfstep::backend::cuda

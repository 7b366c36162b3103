#include "backend/cuda/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

namespace halfstep::backend::cuda {
namespace {

namespace fs = std::filesystem;

std::string find(const PluginSearch& search) {
  if (!search.given.empty()) return search.given;
  std::error_code error;
  for (const std::string& folder : search.folders) {
    const fs::path file = fs::path(folder) / k_plugin_file;
    if (fs::exists(file, error)) return file.string();
  }
  return "";
}

std::string last_dl_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "unknown error" : text;
}

}  // namespace

std::vector<std::string> plugin_folders(const std::string& executable) {
  const fs::path folder = fs::path(executable).parent_path();
  return {folder.string(),
          (folder.parent_path() / "lib" / "halfstep").string(),
          (folder.parent_path() / "lib").string()};
}

std::variant<OpenedPlugin, Unavailable> open_plugin(const PluginSearch& search) {
  const std::string path = find(search);
  if (path.empty()) {
    return Unavailable{
        fmt::format("there is no {} in {}", k_plugin_file, fmt::join(search.folders, ", ")),
        "build with a CUDA toolkit of version 12 or newer, or name the file with "
        "HALFSTEP_CUDA_PLUGIN"};
  }
  // RTLD_NOW, so that a missing library shows here and not in the middle of a step. RTLD_NODELETE,
  // since CUDA's libraries register exit handlers and objects of the plugin may outlive any owner.
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    return Unavailable{fmt::format("cannot load {}: {}", path, last_dl_error()),
                       "the libraries of CUDA must be where the loader finds them, in "
                       "LD_LIBRARY_PATH for example"};
  }
  const auto entry = reinterpret_cast<const Plugin* (*)()>(::dlsym(handle, k_plugin_entry));
  if (entry == nullptr) {
    return Unavailable{fmt::format("{} is not a plugin of this version of halfstep", path),
                       "build program and plugin from the same sources, or name another file"};
  }
  const Plugin* plugin = entry();
  if (std::string_view(plugin->build_id) != build_id()) {
    return Unavailable{fmt::format("{} is of another build ({}) than this program ({})",
                                   path,
                                   std::string_view(plugin->build_id),
                                   build_id()),
                       "build program and plugin from the same sources with the same options"};
  }
  return OpenedPlugin{path, plugin};
}

}  // namespace halfstep::backend::cuda

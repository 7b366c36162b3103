#include "backend/cuda/plugin_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <utility>

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

PluginLibrary::PluginLibrary(std::string path, void* handle, const boundary::Table& table)
    : path_(std::move(path)), handle_(handle), table_(table) {}

PluginLibrary::~PluginLibrary() { ::dlclose(handle_); }

std::variant<std::shared_ptr<PluginLibrary>, Absence> open_plugin(const PluginSearch& search) {
  const std::string path = find(search);
  if (path.empty()) {
    return Absence{
        fmt::format("there is no {} in {}", k_plugin_file, fmt::join(search.folders, ", ")),
        "build with a CUDA toolkit of version 12 or newer, or name the file with "
        "HALFSTEP_CUDA_PLUGIN"};
  }
  // RTLD_NOW, so that a missing library shows here and not in the middle of a step.
  // CUDA's libraries register exit handlers, so that a plugin must stay loaded until the process
  // ends.
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    return Absence{fmt::format("cannot load {}: {}", path, last_dl_error()),
                   "the libraries of CUDA must be where the loader finds them, in "
                   "LD_LIBRARY_PATH for example"};
  }
  const auto entry = reinterpret_cast<boundary::Entry>(::dlsym(handle, boundary::k_entry));
  if (entry == nullptr) {
    ::dlclose(handle);
    return Absence{fmt::format("{} is no plugin of halfstep", path), "name another file"};
  }
  const boundary::Table& table = *entry();
  if (table.abi != boundary::k_abi) {
    const std::uint32_t found = table.abi;
    ::dlclose(handle);
    return Absence{
        fmt::format("{} speaks boundary version {}, this program {}", path, found, boundary::k_abi),
        "build program and plugin from the same sources"};
  }
  return std::make_shared<PluginLibrary>(path, handle, table);
}

}  // namespace halfstep::backend::cuda

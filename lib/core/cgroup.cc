#include "core/cgroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <vector>

namespace halfstep {
namespace {

namespace fs = std::filesystem;

/// The first number in a file of the kernel; nothing for "max", -1 and files that are not there.
std::optional<double> read_number(const fs::path& path) {
  std::ifstream file(path);
  double value = 0;
  if (!(file >> value) || value < 0) return std::nullopt;
  return value;
}

/// Whether a list like "cpu,cpuacct" names `controller`.
bool names(const std::string& list, std::string_view controller) {
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) {
    if (word == controller) return true;
  }
  return false;
}

/// The folders of the process's cgroup and all above it: of one controller of version 1, or, with
/// the controller "", of version 2. Inside a container the path may be one that only the host
/// sees; the files of the root are then those of the container's own cgroup.
std::vector<fs::path> folders(const CgroupFiles& files, std::string_view controller) {
  std::vector<fs::path> found{files.root / controller};
  std::ifstream self(files.self);
  for (std::string line; std::getline(self, line);) {
    // hierarchy:controller,controller:/path
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string list = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? !list.empty() : !names(list, controller)) continue;
    fs::path folder = found.front();
    for (const fs::path& part : fs::path(line.substr(second + 1)).relative_path()) {
      found.push_back(folder /= part);
    }
  }
  return found;
}

/// Bytes left in one cgroup; the arguments name its files, which differ between versions 1 and 2.
std::optional<std::uint64_t> memory_left(const fs::path& folder,
                                         const char* limit_name,
                                         const char* usage_name) {
  const std::optional<double> limit = read_number(folder / limit_name);
  // Version 1 writes "no limit" as the largest number of pages.
  if (!limit || *limit > 1e18) return std::nullopt;
  double used = read_number(folder / usage_name).value_or(0);
  std::ifstream stat(folder / "memory.stat");
  std::string key;
  double value = 0;
  double reclaimable = 0;
  while (stat >> key >> value) {
    if (key == "inactive_file" || key == "total_inactive_file") reclaimable = value;
  }
  used -= std::min(used, reclaimable);
  return static_cast<std::uint64_t>(std::max(0.0, *limit - used));
}

/// "150000 100000", or "max 100000" without a quota.
std::optional<double> quota_of(const fs::path& cpu_max) {
  std::ifstream file(cpu_max);
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

template <class T>
void lower(std::optional<T>& least, std::optional<T> value) {
  if (value) least = least ? std::min(*least, *value) : *value;
}

}  // namespace

std::optional<std::uint64_t> cgroup_memory_left(const CgroupFiles& files) {
  std::optional<std::uint64_t> least;
  for (const fs::path& folder : folders(files, "")) {
    lower(least, memory_left(folder, "memory.max", "memory.current"));
  }
  for (const fs::path& folder : folders(files, "memory")) {
    lower(least, memory_left(folder, "memory.limit_in_bytes", "memory.usage_in_bytes"));
  }
  return least;
}

std::optional<double> cgroup_processors(const CgroupFiles& files) {
  std::optional<double> least;
  for (const fs::path& folder : folders(files, "")) lower(least, quota_of(folder / "cpu.max"));
  for (const fs::path& folder : folders(files, "cpu")) {
    const auto quota = read_number(folder / "cpu.cfs_quota_us");
    const auto period = read_number(folder / "cpu.cfs_period_us");
    if (quota && period && *quota > 0 && *period > 0) lower(least, {*quota / *period});
  }
  return least;
}

}  // namespace halfstep

#include "core/system.h"

#include <fmt/chrono.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

namespace halfstep {
namespace {

constexpr std::uint64_t k_unlimited = std::numeric_limits<std::uint64_t>::max();

/// A number in a file of the kernel; "max" and absence mean no limit.
std::uint64_t read_number(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : k_unlimited;
}

/// What a cgroup leaves: limit minus what is in use and cannot be reclaimed.
std::uint64_t cgroup_left(const std::string& limit_file,
                          const std::string& usage_file,
                          const std::string& stat_file) {
  const std::uint64_t limit = read_number(limit_file);
  if (limit > (std::uint64_t{1} << 60)) return k_unlimited;
  std::uint64_t used = read_number(usage_file);
  if (used == k_unlimited) used = 0;
  std::ifstream stat(stat_file);
  std::string key;
  std::uint64_t value = 0;
  while (stat >> key >> value) {
    if (key == "inactive_file" || key == "total_inactive_file") used -= std::min(used, value);
  }
  return limit > used ? limit - used : 0;
}

std::uint64_t machine_available() {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream in(line);
    std::string key;
    std::uint64_t kilobytes = 0;
    if (in >> key >> kilobytes && key == "MemAvailable:") return kilobytes * 1024;
  }
  return k_unlimited;
}

}  // namespace

std::uint64_t available_memory_bytes() {
  // The process's own cgroup path, when it is not the root.
  std::uint64_t left = machine_available();
  std::ifstream self("/proc/self/cgroup");
  std::string line;
  while (std::getline(self, line)) {
    const std::size_t colon = line.rfind(':');
    if (!line.starts_with("0::") || colon == std::string::npos) continue;
    std::filesystem::path group = "/sys/fs/cgroup" + line.substr(colon + 1);
    for (; group.string().size() >= std::string("/sys/fs/cgroup").size();
         group = group.parent_path()) {
      left = std::min(
          left, cgroup_left(group / "memory.max", group / "memory.current", group / "memory.stat"));
      if (group == "/sys/fs/cgroup") break;
    }
  }
  return std::min(left,
                  cgroup_left("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                              "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                              "/sys/fs/cgroup/memory/memory.stat"));
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<std::uint64_t>(usage.ru_maxrss) * 1024
                                             : 0;
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "";
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? "" : line.substr(colon + 2);
  }
  return "";
}

std::array<double, 3> load_average() {
  std::array<double, 3> load{};
  if (getloadavg(load.data(), 3) != 3) load = {};
  return load;
}

std::string executable_path() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : path.string();
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string utc_now_compact() {
  return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace halfstep

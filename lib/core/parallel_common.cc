#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include "core/parallel.h"

namespace halfstep {
namespace {

/// Processors that one group's quota allows, from its file "quota period"; infinite without one.
double processors_of(const std::string& cpu_max) {
  std::ifstream file(cpu_max);
  std::string quota;
  double period = 0;
  if (file >> quota >> period && quota != "max" && period > 0) {
    const double microseconds = std::strtod(quota.c_str(), nullptr);
    if (microseconds > 0) return microseconds / period;
  }
  return std::numeric_limits<double>::infinity();
}

/// The path of this process's group below the mount of control groups version 2, "" for the root.
std::string own_group() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(3) == "/" ? "" : line.substr(3);
  }
  return "";
}

/// Processors allowed by the quotas of this group and all groups around it; infinite without any.
double quota() {
  double least = std::numeric_limits<double>::infinity();
  for (std::string group = own_group();; group.resize(group.rfind('/'))) {
    least = std::min(least, processors_of("/sys/fs/cgroup" + group + "/cpu.max"));
    if (group.empty()) break;
  }
  // Version 1 keeps the two numbers in files of their own.
  std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double microseconds = 0;
  double period = 0;
  if (quota_file >> microseconds && period_file >> period && microseconds > 0 && period > 0) {
    least = std::min(least, microseconds / period);
  }
  return least;
}

}  // namespace

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::ceil(std::min<double>(count, quota())));
}

}  // namespace halfstep

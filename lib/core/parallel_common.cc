#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "core/parallel.h"

namespace halfstep {
namespace {

/// CPUs allowed by the cgroup's quota, rounded up; 0 when there is none.
int cgroup_quota() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (v2 >> quota >> period && quota != "max" && period > 0) {
    std::istringstream text(quota);
    double microseconds = 0;
    if (text >> microseconds && microseconds > 0) {
      return static_cast<int>(std::ceil(microseconds / period));
    }
    return 0;
  }
  std::ifstream v1_quota("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  double microseconds = 0;
  if (v1_quota >> microseconds && v1_period >> period && microseconds > 0 && period > 0) {
    return static_cast<int>(std::ceil(microseconds / period));
  }
  return 0;
}

}  // namespace

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = std::max(1, CPU_COUNT(&set));
  const int quota = cgroup_quota();
  return quota > 0 ? std::min(count, quota) : count;
}

}  // namespace halfstep

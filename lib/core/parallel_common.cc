#include <sched.h>

#include <algorithm>
#include <cmath>

#include "core/cgroup.h"
#include "core/parallel.h"

namespace halfstep {

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = 1;
  if (sched_getaffinity(0, sizeof set, &set) == 0) count = std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::ceil(std::min<double>(count, cgroup_processors().value_or(count))));
}

}  // namespace halfstep

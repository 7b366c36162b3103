#pragma once
// Memory and processor limits of the process's cgroups; versions 1 and 2 of the kernel interface.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace halfstep {

/// Where the kernel shows the cgroups of the machine and those that this process is in.
struct CgroupFiles {
  std::filesystem::path root = "/sys/fs/cgroup";
  std::filesystem::path self = "/proc/self/cgroup";
};

/// Bytes the process may still allocate under the tightest memory limit among its cgroup and that
/// cgroup's ancestors: the limit less the usage that cannot be reclaimed. Nothing when no limit is
/// set.
std::optional<std::uint64_t> cgroup_memory_left(const CgroupFiles& files = {});

/// Processors under the tightest CPU quota among the process's cgroup and that cgroup's ancestors;
/// 1.5 means one and a half. Nothing when no quota is set.
std::optional<double> cgroup_processors(const CgroupFiles& files = {});

}  // namespace halfstep

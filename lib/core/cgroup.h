#pragma once
// What the cgroups of a process leave it of the machine; versions 1 and 2 of the interface.

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

/// Bytes that the tightest limit of the process's cgroup and those above it leaves: the limit less
/// what is in use and cannot be reclaimed. Nothing without a limit.
std::optional<std::uint64_t> cgroup_memory_left(const CgroupFiles& files = {});

/// Processors by the tightest quota of the process's cgroup and those above it, 1.5 for one and a
/// half. Nothing without a quota.
std::optional<double> cgroup_processors(const CgroupFiles& files = {});

}  // namespace halfstep

#include "core/cgroup.h"

#include <doctest/doctest.h>

#include <fstream>
#include <ostream>
#include <string_view>

#include "support/temporary_directory.h"

namespace halfstep::test {
namespace {

namespace fs = std::filesystem;

/// A tree of cgroup files as the kernel would show it.
class Tree {
 public:
  void write(std::string_view path, std::string_view text) {
    const fs::path file = directory_.path() / path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  CgroupFiles files() const { return {directory_.path() / "root", directory_.path() / "self"}; }

 private:
  TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("cgroup: without files there is no limit") {
  const Tree tree;
  CHECK_FALSE(cgroup_memory_left(tree.files()));
  CHECK_FALSE(cgroup_processors(tree.files()));
}

TEST_CASE("cgroup: words for no limit are no limits") {
  Tree tree;
  tree.write("self", "0::/job\n2:memory:/job\n3:cpu:/job\n");
  tree.write("root/job/memory.max", "max\n");
  tree.write("root/job/cpu.max", "max 100000\n");
  tree.write("root/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  tree.write("root/cpu/job/cpu.cfs_quota_us", "-1\n");
  tree.write("root/cpu/job/cpu.cfs_period_us", "100000\n");
  CHECK_FALSE(cgroup_memory_left(tree.files()));
  CHECK_FALSE(cgroup_processors(tree.files()));
}

TEST_CASE("cgroup: version 2 takes the tightest limit on the way to the root") {
  Tree tree;
  tree.write("self", "0::/batch/job\n");
  tree.write("root/batch/memory.max", "1000\n");
  tree.write("root/batch/memory.current", "700\n");
  tree.write("root/batch/memory.stat", "anon 600\ninactive_file 100\n");
  tree.write("root/batch/job/memory.max", "5000\n");
  tree.write("root/batch/job/memory.current", "600\n");
  tree.write("root/batch/cpu.max", "300000 100000\n");
  tree.write("root/batch/job/cpu.max", "150000 100000\n");
  CHECK(cgroup_memory_left(tree.files()) == 400);
  CHECK(cgroup_processors(tree.files()) == 1.5);
}

TEST_CASE("cgroup: version 1 reads the process's own cgroup of each controller") {
  Tree tree;
  tree.write("self", "4:memory:/batch\n5:cpu,cpuacct:/batch\n0::/\n");
  tree.write("root/memory/memory.limit_in_bytes", "9223372036854771712\n");
  tree.write("root/memory/batch/memory.limit_in_bytes", "2147483648\n");
  tree.write("root/memory/batch/memory.usage_in_bytes", "1048576\n");
  tree.write("root/cpu/batch/cpu.cfs_quota_us", "50000\n");
  tree.write("root/cpu/batch/cpu.cfs_period_us", "100000\n");
  CHECK(cgroup_memory_left(tree.files()) == 2147483648 - 1048576);
  CHECK(cgroup_processors(tree.files()) == 0.5);
}

TEST_CASE("cgroup: a path that only the host sees leaves the container's root") {
  Tree tree;
  tree.write("self", "4:memory:/docker/0123\n0::/docker/0123\n");
  tree.write("root/memory/memory.limit_in_bytes", "4096\n");
  CHECK(cgroup_memory_left(tree.files()) == 4096);
}

TEST_CASE("cgroup: more in use than allowed leaves nothing") {
  Tree tree;
  tree.write("self", "0::/job\n");
  tree.write("root/job/memory.max", "100\n");
  tree.write("root/job/memory.current", "300\n");
  CHECK(cgroup_memory_left(tree.files()) == 0);
}

}  // namespace halfstep::test

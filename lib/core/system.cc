#include "core/system.h"

#include <fmt/chrono.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "core/cgroup.h"

namespace halfstep {
namespace {

constexpr std::uint64_t k_unlimited = std::numeric_limits<std::uint64_t>::max();

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

/// Seconds that the processors which this process may use have been busy since the system started;
/// nothing where /proc/stat does not tell.
std::optional<double> busy_seconds() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::nullopt;
  std::ifstream file("/proc/stat");
  std::string line;
  double busy = 0, all = 0;
  while (std::getline(file, line) && line.starts_with("cpu")) {
    // The first line, without a number, is the sum.
    unsigned processor = 0;
    std::istringstream in(line.substr(3));
    if (line[3] == ' ' || !(in >> processor) || !CPU_ISSET(processor, &allowed)) continue;
    // user, nice, system, idle, iowait, irq, softirq, steal
    double ticks = 0;
    for (int column = 0; column < 8 && in >> ticks; ++column) {
      all += ticks;
      if (column != 3 && column != 4) busy += ticks;
    }
  }
  if (all == 0) return std::nullopt;
  return busy / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

std::uint64_t available_memory_bytes() {
  return std::min(machine_available(), cgroup_memory_left().value_or(k_unlimited));
}

void prefer_large_pages(void* address, std::size_t bytes) {
  // Large pages only improve speed, so a failure is ignored.
  (void)madvise(address, bytes, MADV_HUGEPAGE);
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
  // ARM's list of processors names none.
  utsname system{};
  return uname(&system) == 0 ? system.machine : "";
}

std::array<double, 3> load_average() {
  std::array<double, 3> load{};
  if (getloadavg(load.data(), 3) != 3) load = {};
  return load;
}

std::optional<double> busy_processors(double seconds) {
  const std::clock_t own = std::clock();
  const auto start = std::chrono::steady_clock::now();
  const std::optional<double> before = busy_seconds();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const std::optional<double> after = busy_seconds();
  if (!before || !after) return std::nullopt;
  const double own_seconds = static_cast<double>(std::clock() - own) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  return std::max(0.0, (*after - *before - own_seconds) / passed.count());
}

std::string executable_path() {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "" : path.string();
}

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::optional<double> unix_seconds(std::string_view utc) {
  constexpr std::string_view k_form = "0000-00-00T00:00:00Z";
  if (utc.size() != k_form.size()) return std::nullopt;
  for (std::size_t i = 0; i < utc.size(); ++i) {
    const bool digit = utc[i] >= '0' && utc[i] <= '9';
    if (k_form[i] == '0' ? !digit : utc[i] != k_form[i]) return std::nullopt;
  }
  const auto number = [&](std::size_t begin, std::size_t digits) {
    int value = 0;
    for (const char c : utc.substr(begin, digits)) value = 10 * value + (c - '0');
    return value;
  };
  const std::chrono::year_month_day date{std::chrono::year(number(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (!date.ok() || hour > 23 || minute > 59 || second > 60) return std::nullopt;
  const std::chrono::sys_days days = date;
  return static_cast<double>(days.time_since_epoch().count()) * 86400.0 + hour * 3600.0 +
         minute * 60.0 + second;
}

std::string utc_now_compact() {
  return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::time(nullptr)));
}

}  // namespace halfstep

#pragma once
// Properties of the machine and the process: memory limits, peak memory, names for reports.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halfstep {

/// Bytes this process may still allocate: the smaller of the memory left under its cgroup's limit
/// and the memory that the machine has available.
std::uint64_t available_memory_bytes();

/// Bytes of a large page.
inline constexpr std::size_t k_large_page_bytes = std::size_t{2} << 20;
/// Requests transparent large pages for this range (madvise); no effect where the system has none.
void prefer_large_pages(void* address, std::size_t bytes);

/// Peak resident set of this process.
std::uint64_t peak_rss_bytes();

std::string host_name();
/// "model name" of the processor, "" when unknown.
std::string cpu_model();
/// 1, 5 and 15 minute load averages; zeros when unknown.
std::array<double, 3> load_average();
/// The number of processors, on average over the next `seconds`, that run other processes, of those
/// that this process may use; nothing where the system does not tell. Blocks for `seconds`.
std::optional<double> busy_processors(double seconds);
/// Path of the running program.
std::string executable_path();
/// UTC as 2026-01-31T12:00:00Z, of now.
std::string utc_now();
/// Seconds since 1970 of a time as utc_now() writes it; nothing for other text.
std::optional<double> unix_seconds(std::string_view utc);
/// UTC as 20260131T120000Z.
std::string utc_now_compact();

}  // namespace halfstep

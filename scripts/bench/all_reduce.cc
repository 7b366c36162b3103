// bench_all_reduce BYTES...: the sum of float32 numbers over the ranks that a launcher started, by
// the MPI library's own MPI_Allreduce and by comm::Sum, in turns. Rank 0 prints one JSON object per
// size and line, with the seconds of each turn, of the slowest rank:
//
//   {"bytes": 1048576, "ranks": 2, "library": "Open MPI v4.1.4", "bare": [...], "sum": [...]}
//
// A turn lasts from a common start until the rank has the result. `sum` adds in the order of the
// ranks and rounds once, which MPI_Allreduce does not promise.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/mpi.h"
#include "comm/mpi_library.h"
#include "core/error.h"

namespace halfstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int k_warmup = 3;
/// Turns of a size: as many as sum about this many bytes, within bounds.
constexpr std::int64_t k_bytes = std::int64_t{1} << 30;
constexpr std::int64_t k_fewest = 9, k_most = 301;

/// MPI_Allreduce(MPI_IN_PLACE, numbers, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) of the library
/// that comm::start_mpi() has started. Constants: mpi.h of Open MPI 4.1 and MPICH 4.0.
std::function<void(float*, int)> bare_all_reduce(const comm::LoadedLibrary& library) {
  void* const function = library.find("MPI_Allreduce");
  require(function != nullptr, "an MPI library without MPI_Allreduce");
  if (void* const world = library.find("ompi_mpi_comm_world"); world != nullptr) {
    using AllReduce = int (*)(const void*, void*, int, void*, void*, void*);
    void* const number = library.find("ompi_mpi_float");
    void* const sum = library.find("ompi_mpi_op_sum");
    return [=](float* numbers, int count) {
      void* const in_place = std::bit_cast<void*>(std::intptr_t{1});
      reinterpret_cast<AllReduce>(function)(in_place, numbers, count, number, sum, world);
    };
  }
  using AllReduce = int (*)(const void*, void*, int, int, int, int);
  return [=](float* numbers, int count) {
    void* const in_place = std::bit_cast<void*>(std::intptr_t{-1});
    reinterpret_cast<AllReduce>(function)(
        in_place, numbers, count, 0x4c00040a, 0x58000003, 0x44000000);
  };
}

/// Seconds of `turn` on the slowest rank, from a common start.
double seconds(comm::Communicator& ranks, const std::function<void()>& turn) {
  std::vector<double> together{0};
  comm::add_over_ranks(ranks, together);
  const Clock::time_point start = Clock::now();
  turn();
  const double own = std::chrono::duration<double>(Clock::now() - start).count();
  double slowest = 0;
  for (const std::string& text : ranks.gather(fmt::format("{}", own))) {
    slowest = std::max(slowest, std::stod(text));
  }
  return slowest;
}

void measure(comm::Communicator& ranks,
             const std::function<void(float*, int)>& bare,
             std::int64_t bytes) {
  const std::int64_t count = std::max<std::int64_t>(1, bytes / 4);
  std::vector<float> numbers(static_cast<std::size_t>(comm::padded_count(count, ranks.size())),
                             1.0F);
  const std::unique_ptr<comm::Sum> sum =
      ranks.sum(count, DType::float32, comm::SumKind::all_reduce);
  std::vector<double> bare_seconds, sum_seconds;
  const std::int64_t turns = std::clamp(k_bytes / (4 * count), k_fewest, k_most);
  for (std::int64_t i = -k_warmup; i < turns; ++i) {
    std::fill(numbers.begin(), numbers.end(), 1.0F);
    const double a = seconds(ranks, [&] { bare(numbers.data(), static_cast<int>(count)); });
    std::fill(numbers.begin(), numbers.end(), 1.0F);
    auto* const buffer = reinterpret_cast<std::byte*>(numbers.data());
    const double b = seconds(ranks, [&] {
      sum->start(buffer);
      ranks.wait(buffer);
    });
    require(numbers[0] == static_cast<float>(ranks.size()), "a wrong sum");
    if (i < 0) continue;
    bare_seconds.push_back(a);
    sum_seconds.push_back(b);
  }
  if (ranks.rank() != 0) return;
  fmt::print(R"({{"bytes": {}, "ranks": {}, "library": "{}", "bare": [{:.4g}], "sum": [{:.4g}]}})"
             "\n",
             4 * count,
             ranks.size(),
             ranks.transport().library,
             fmt::join(bare_seconds, ", "),
             fmt::join(sum_seconds, ", "));
}

int run(int argc, char** argv) {
  const std::shared_ptr<comm::Communicator> ranks = comm::start_mpi({});
  const comm::FoundLibrary found = comm::find_library("", false);
  const std::function<void(float*, int)> bare = bare_all_reduce(*found.library);
  for (int i = 1; i < argc; ++i) {
    const std::string_view text = argv[i];
    std::int64_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (error != std::errc() || end != text.data() + text.size() || bytes < 4) {
      fmt::print(stderr, "'{}' is not a number of bytes\n", text);
      return 2;
    }
    measure(*ranks, bare, bytes);
  }
  ranks->close();
  return 0;
}

}  // namespace
}  // namespace halfstep::bench

int main(int argc, char** argv) { return halfstep::bench::run(argc, argv); }

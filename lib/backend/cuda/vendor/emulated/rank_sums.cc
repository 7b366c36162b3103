#include "backend/cuda/vendor/emulated/rank_sums.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "comm/communicator.h"

namespace halfstep::backend::cuda {
namespace emulated {
namespace {

/// Before the numbers. A page of the file is memory only once it is written.
constexpr std::size_t k_header_bytes = 1 << 16;
constexpr std::size_t k_file_bytes = std::size_t{16} << 30;
constexpr std::chrono::seconds k_join_limit{60};

}  // namespace

RankSums::RankSums(const RankId& id, int rank, int ranks) : rank_(rank) {
  const int file = ::shm_open(id.data(), O_RDWR | O_CREAT, 0600);
  const bool sized = file >= 0 && ::ftruncate(file, k_file_bytes) == 0;
  void* mapped =
      sized
          ? ::mmap(
                nullptr, k_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0)
          : MAP_FAILED;
  const int error = errno;
  if (file >= 0) ::close(file);
  if (mapped == MAP_FAILED) {
    throw VendorError(Failure::ranks,
                      fmt::format("cannot map {}: {}", id.data(), std::strerror(error)));
  }
  file_ = static_cast<std::byte*>(mapped);
  progress_ = {reinterpret_cast<Progress*>(file_), static_cast<std::size_t>(ranks)};
  numbers_ = file_ + k_header_bytes;
  // New pages are zero. A rank that has joined counts as having published a sum.
  progress_[static_cast<std::size_t>(rank_)].published = 1;
  const auto begin = std::chrono::steady_clock::now();
  while (!all_have(&Progress::published, 1)) {
    if (std::chrono::steady_clock::now() - begin > k_join_limit) {
      ::munmap(file_, k_file_bytes);
      throw VendorError(Failure::ranks, "not all ranks have joined");
    }
    std::this_thread::yield();
  }
  sums_ = 1;
  progress_[static_cast<std::size_t>(rank_)].added = 1;
  ::shm_unlink(id.data());
}

RankSums::~RankSums() { ::munmap(file_, k_file_bytes); }

bool RankSums::all_have(std::atomic<std::int64_t> Progress::*count, std::int64_t least) const {
  return std::all_of(progress_.begin(), progress_.end(), [&](const Progress& rank) {
    return rank.*count >= least;
  });
}

bool RankSums::advance(std::byte* numbers,
                       std::int64_t count,
                       DType dtype,
                       comm::CollectiveKind kind) {
  if (abandoned_) return true;
  Progress& own = progress_[static_cast<std::size_t>(rank_)];
  const std::size_t bytes = static_cast<std::size_t>(count) * size_bytes(dtype);
  if (!published_) {
    // The sum before may still be read.
    if (!all_have(&Progress::added, sums_)) return false;
    std::memcpy(numbers_ + static_cast<std::size_t>(rank_) * bytes, numbers, bytes);
    published_ = true;
    own.published = sums_ + 1;
  }
  if (!all_have(&Progress::published, sums_ + 1)) return false;
  const std::size_t ranks = progress_.size(), part = bytes / ranks;
  if (kind != comm::CollectiveKind::all_gather) {
    std::vector<const std::byte*> parts;
    for (std::size_t r = 0; r < ranks; ++r) parts.push_back(numbers_ + r * bytes);
    comm::reduce_sum(parts, count, dtype, numbers);
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    std::byte* const of_rank = numbers + r * part;
    if (kind == comm::CollectiveKind::all_gather) {
      std::memcpy(of_rank, numbers_ + r * bytes + r * part, part);
    } else if (kind == comm::CollectiveKind::reduce_scatter && static_cast<int>(r) != rank_) {
      std::memset(of_rank, 0xFF, part);  // NaN for whoever reads it
    }
  }
  published_ = false;
  own.added = ++sums_;
  return true;
}

}  // namespace emulated

RankId new_rank_id() {
  RankId id{};
  fmt::format_to_n(
      id.data(), id.size() - 1, "/halfstep-ranks-{}-{:08x}", ::getpid(), std::random_device()());
  return id;
}

}  // namespace halfstep::backend::cuda

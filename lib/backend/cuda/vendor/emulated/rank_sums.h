#pragma once
// NCCL on host memory: the ranks are processes or threads of one machine, and their numbers travel
// through a mapped file.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cuda/vendor/vendor.h"

namespace halfstep::backend::cuda::emulated {

class RankSums {
 public:
  /// Blocks until all ranks are there. Errors: VendorError after a minute.
  RankSums(const RankId& id, int rank, int ranks);
  RankSums(const RankSums&) = delete;
  RankSums& operator=(const RankSums&) = delete;
  ~RankSums();

  /// Advances a sum in place, one at a time, without blocking. Returns whether it is done; it is
  /// not while the numbers of another rank are missing.
  bool advance(std::byte* numbers, std::int64_t count, DType dtype, comm::CollectiveKind kind);
  /// Each sum counts as done from now on.
  void abandon() { abandoned_ = true; }

 private:
  /// How many sums one rank has reached.
  struct Progress {
    std::atomic<std::int64_t> published;  ///< its numbers are in the file
    std::atomic<std::int64_t> added;      ///< it has read the numbers of all ranks
  };
  bool all_have(std::atomic<std::int64_t> Progress::*count, std::int64_t least) const;

  int rank_;
  std::byte* file_ = nullptr;
  std::span<Progress> progress_;  ///< by rank, at the begin of the file
  std::byte* numbers_ = nullptr;  ///< of all ranks, one after the other
  std::int64_t sums_ = 0;         ///< done
  bool published_ = false;        ///< whether this rank's numbers of the next sum are in the file
  bool abandoned_ = false;
};

}  // namespace halfstep::backend::cuda::emulated

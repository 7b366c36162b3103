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

  /// Goes on with a sum in place, one at a time, and returns whether it is done: false while other
  /// ranks have not come as far, without blocking.
  bool advance(std::byte* numbers, std::int64_t count, DType dtype, comm::SumKind kind);
  /// Each sum counts as done from now on.
  void abandon() { abandoned_ = true; }

 private:
  /// The sums of one rank.
  struct Progress {
    std::atomic<std::int64_t> published;  ///< whose numbers are in the file
    std::atomic<std::int64_t> added;      ///< whose numbers of all ranks it has read
  };
  bool all_have(std::atomic<std::int64_t> Progress::*count, std::int64_t least) const;

  int rank_;
  std::byte* file_ = nullptr;
  std::span<Progress> progress_;  ///< by rank, at the begin of the file
  std::byte* numbers_ = nullptr;  ///< of all ranks, one after the other
  std::int64_t sums_ = 0;         ///< that are done
  bool published_ = false;        ///< whether this rank's numbers of the next are in the file
  bool abandoned_ = false;
};

}  // namespace halfstep::backend::cuda::emulated

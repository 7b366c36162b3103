#pragma once
// Sums over the ranks of a run by NCCL, which is loaded at run time and needs no headers.

#include <cuda_runtime_api.h>

#include <map>

#include "backend/cuda/vendor/vendor.h"

namespace halfstep::backend::cuda::real {

// Constants of NCCL's binary interface, the same since version 2.10.
constexpr int k_nccl_success = 0, k_nccl_in_progress = 7;
constexpr int k_nccl_sum = 0;
constexpr int k_nccl_float16 = 6, k_nccl_float32 = 7, k_nccl_bfloat16 = 9;

/// "2.28.9"; "" where the loader finds no NCCL. Never throws.
std::string nccl_version();

class RankSums {
 public:
  /// Joins the ranks on the current device; blocks until all have. The sums run on a stream of
  /// their own, beside `stream`. Errors: VendorError.
  RankSums(cudaStream_t stream, const RankId& id, int rank, int ranks);
  RankSums(const RankSums&) = delete;
  RankSums& operator=(const RankSums&) = delete;
  ~RankSums();

  void start(void* numbers, std::int64_t count, DType dtype, comm::CollectiveKind kind);
  void wait(const void* numbers);
  /// Errors: VendorError where a sum has failed since it was enqueued.
  void expect_no_error() const;
  void abandon() noexcept;

 private:
  void close() noexcept;

  std::size_t rank_, ranks_;
  cudaStream_t stream_;
  cudaStream_t sums_ = nullptr;
  cudaEvent_t ready_ = nullptr;                ///< the numbers of the sum started last
  std::map<const void*, cudaEvent_t> summed_;  ///< by the address of the numbers
  void* communicator_ = nullptr;               ///< ncclComm_t; null once abandoned
};

}  // namespace halfstep::backend::cuda::real

// NCCL's interface as the plugin declares it, against NCCL's header where there is one.

#include <doctest/doctest.h>

#include "backend/cuda/vendor/real/rank_sums.h"
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace halfstep::backend::cuda::real {

TEST_CASE("nccl: constants and the id are those of its header") {
#if __has_include(<nccl.h>)
  CHECK(k_nccl_success == ncclSuccess);
  CHECK(k_nccl_in_progress == ncclInProgress);
  CHECK(k_nccl_sum == ncclSum);
  CHECK(k_nccl_float16 == ncclFloat16);
  CHECK(k_nccl_float32 == ncclFloat32);
  CHECK(k_nccl_bfloat16 == ncclBfloat16);
  CHECK(sizeof(RankId) == sizeof(ncclUniqueId));
#else
  MESSAGE("skipped: there is no nccl.h");
#endif
}

}  // namespace halfstep::backend::cuda::real

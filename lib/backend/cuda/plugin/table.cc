#include <array>

#include "backend/cuda/plugin/prepare.h"

namespace halfstep::backend::cuda::plugin {

std::span<const Row> rows() {
  static constexpr std::array k_rows{
      Row{"cublaslt/matmul", prepare_matmul},
      Row{"cublaslt/batch_matmul", prepare_batch_matmul},
      Row{"cublaslt/fused_matmul", prepare_fused_product},
      Row{"cudnn/convolution", prepare_convolution},
      Row{"cuda/add_n", prepare_add_n},
      Row{"cuda/all_finite", prepare_all_finite},
      Row{"cuda/assign", prepare_assign},
      Row{"cuda/assign_add", prepare_assign_add},
      Row{"cuda/avg_pool", prepare_avg_pool},
      Row{"cuda/avg_pool_grad", prepare_avg_pool_grad},
      Row{"cuda/batch_norm", prepare_batch_norm},
      Row{"cuda/batch_norm_grad", prepare_batch_norm_grad},
      Row{"cuda/bias_add", prepare_bias_add},
      Row{"cuda/bias_grad", prepare_bias_grad},
      Row{"cuda/binary", prepare_binary},
      Row{"cuda/broadcast", prepare_broadcast},
      Row{"cuda/cast", prepare_cast},
      Row{"cuda/clip", prepare_clip},
      Row{"cuda/concat", prepare_concat},
      Row{"cuda/cross_entropy", prepare_cross_entropy},
      Row{"cuda/fill", prepare_fill},
      Row{"cuda/gather", prepare_gather},
      Row{"cuda/gather_batch", prepare_gather_batch},
      Row{"cuda/keep_state", prepare_keep_state},
      Row{"cuda/log_scalars", prepare_log_scalars},
      Row{"cuda/in_top_k", prepare_in_top_k},
      Row{"cuda/l2_loss", prepare_l2_loss},
      Row{"cuda/learning_rate", prepare_learning_rate},
      Row{"cuda/loss_scale", prepare_loss_scale},
      Row{"cuda/max_pool", prepare_max_pool},
      Row{"cuda/max_pool_grad", prepare_max_pool_grad},
      Row{"cuda/one_hot", prepare_one_hot},
      Row{"cuda/pad", prepare_pad},
      Row{"cuda/random_flip", prepare_random_flip},
      Row{"cuda/random_translation", prepare_random_translation},
      Row{"cuda/reduce", prepare_reduce},
      Row{"cuda/reverse", prepare_reverse},
      Row{"cuda/segment_sum", prepare_segment_sum},
      Row{"cuda/select", prepare_select},
      Row{"cuda/shape", prepare_shape},
      Row{"cuda/slice", prepare_slice},
      Row{"cuda/softmax", prepare_softmax},
      Row{"cuda/sparse_cross_entropy", prepare_sparse_cross_entropy},
      Row{"cuda/split", prepare_split},
      Row{"cuda/tile", prepare_tile},
      Row{"cuda/transpose", prepare_transpose},
      Row{"cuda/unary", prepare_unary},
      Row{"cuda/uniform", prepare_uniform},
      Row{"cuda/update", prepare_update},
  };
  return k_rows;
}

}  // namespace halfstep::backend::cuda::plugin

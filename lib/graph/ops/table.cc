#include "core/concatenate.h"
#include "graph/ops/ops.h"

namespace halfstep::graph {

const OpTable& op_table() {
  static const OpTable table(concatenate<OpDef>(
      {ops::activation_ops(), ops::ahead_ops(),      ops::array_ops(),   ops::attention_ops(),
       ops::binary_ops(),     ops::collective_ops(), ops::conv_ops(),    ops::elementwise_ops(),
       ops::imported_ops(),   ops::fused_ops(),      ops::image_ops(),   ops::matmul_ops(),
       ops::norm_ops(),       ops::packed_ops(),     ops::pool_ops(),    ops::random_ops(),
       ops::recurrent_ops(),  ops::reduce_ops(),     ops::scaling_ops(), ops::softmax_ops(),
       ops::state_ops(),      ops::unary_ops(),      ops::update_ops()}));
  return table;
}

}  // namespace halfstep::graph

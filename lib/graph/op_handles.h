#pragma once
// Constants for the names of ops. An op needs a line here only when a comparison names it; a test
// looks each one up in the op table.

#include <string_view>

namespace halfstep::graph {

/// An op by name, as a constant: `node.is(ops::k_matmul)`.
struct OpHandle {
  std::string_view name;

  friend constexpr bool operator==(std::string_view op, OpHandle handle) {
    return op == handle.name;
  }
};

namespace ops {

inline constexpr OpHandle k_add_n{"AddN"};
inline constexpr OpHandle k_add_v2{"AddV2"};
inline constexpr OpHandle k_all{"All"};
inline constexpr OpHandle k_all_finite{"AllFinite"};
inline constexpr OpHandle k_all_gather_start{"AllGatherStart"};
inline constexpr OpHandle k_all_gather_wait{"AllGatherWait"};
inline constexpr OpHandle k_all_reduce_start{"AllReduceStart"};
inline constexpr OpHandle k_batch_matmul_v2{"BatchMatMulV2"};
inline constexpr OpHandle k_batch_norm_relu_grad{"BatchNormReluGrad"};
inline constexpr OpHandle k_bias_add{"BiasAdd"};
inline constexpr OpHandle k_bias_add_grad{"BiasAddGrad"};
inline constexpr OpHandle k_cast_bias_add_grad{"CastBiasAddGrad"};
inline constexpr OpHandle k_broadcast_to{"BroadcastTo"};
inline constexpr OpHandle k_cast{"Cast"};
inline constexpr OpHandle k_cast_variable{"CastVariable"};
inline constexpr OpHandle k_const{"Const"};
inline constexpr OpHandle k_conv2d{"Conv2D"};
inline constexpr OpHandle k_conv2d_backprop_filter{"Conv2DBackpropFilter"};
inline constexpr OpHandle k_conv2d_backprop_input{"Conv2DBackpropInput"};
inline constexpr OpHandle k_conv2d_bias{"Conv2DBias"};
inline constexpr OpHandle k_conv2d_bias_relu{"Conv2DBiasRelu"};
inline constexpr OpHandle k_depthwise_conv2d_native{"DepthwiseConv2dNative"};
inline constexpr OpHandle k_depthwise_conv2d_native_backprop_filter{
    "DepthwiseConv2dNativeBackpropFilter"};
inline constexpr OpHandle k_depthwise_conv2d_native_backprop_input{
    "DepthwiseConv2dNativeBackpropInput"};
inline constexpr OpHandle k_div{"Div"};
inline constexpr OpHandle k_enter{"Enter"};
inline constexpr OpHandle k_fused_attention{"FusedAttention"};
inline constexpr OpHandle k_fused_attention_grad{"FusedAttentionGrad"};
inline constexpr OpHandle k_fused_batch_norm{"FusedBatchNorm"};
inline constexpr OpHandle k_fused_batch_norm_grad{"FusedBatchNormGrad"};
inline constexpr OpHandle k_fused_batch_norm_grad_v3{"FusedBatchNormGradV3"};
inline constexpr OpHandle k_fused_batch_norm_v3{"FusedBatchNormV3"};
inline constexpr OpHandle k_fused_matmul{"FusedMatMul"};
inline constexpr OpHandle k_fused_update{"FusedUpdate"};
inline constexpr OpHandle k_greater_equal{"GreaterEqual"};
inline constexpr OpHandle k_grouped_update{"GroupedUpdate"};
inline constexpr OpHandle k_identity{"Identity"};
inline constexpr OpHandle k_inv{"Inv"};
inline constexpr OpHandle k_is_finite{"IsFinite"};
inline constexpr OpHandle k_l2_loss{"L2Loss"};
inline constexpr OpHandle k_log_softmax{"LogSoftmax"};
inline constexpr OpHandle k_logical_and{"LogicalAnd"};
inline constexpr OpHandle k_matmul{"MatMul"};
inline constexpr OpHandle k_max{"Max"};
inline constexpr OpHandle k_max_pool{"MaxPool"};
inline constexpr OpHandle k_max_pool_grad{"MaxPoolGrad"};
inline constexpr OpHandle k_mean{"Mean"};
inline constexpr OpHandle k_merge{"Merge"};
inline constexpr OpHandle k_min{"Min"};
inline constexpr OpHandle k_mul{"Mul"};
inline constexpr OpHandle k_next_iteration{"NextIteration"};
inline constexpr OpHandle k_pack_operand{"PackOperand"};
inline constexpr OpHandle k_packed_matmul{"PackedMatMul"};
inline constexpr OpHandle k_packed_matmul_update{"PackedMatMulUpdate"};
inline constexpr OpHandle k_packed_variable{"PackedVariable"};
inline constexpr OpHandle k_placeholder{"Placeholder"};
inline constexpr OpHandle k_random_uniform_from_ordinal{"RandomUniformFromOrdinal"};
inline constexpr OpHandle k_read_variable_op{"ReadVariableOp"};
inline constexpr OpHandle k_real_div{"RealDiv"};
inline constexpr OpHandle k_reciprocal{"Reciprocal"};
inline constexpr OpHandle k_reduce_scatter_start{"ReduceScatterStart"};
inline constexpr OpHandle k_relu{"Relu"};
inline constexpr OpHandle k_relu_grad{"ReluGrad"};
inline constexpr OpHandle k_reshape{"Reshape"};
inline constexpr OpHandle k_reverse_v2{"ReverseV2"};
inline constexpr OpHandle k_rnn{"RNN"};
inline constexpr OpHandle k_rnn_grad{"RNNGrad"};
inline constexpr OpHandle k_select{"Select"};
inline constexpr OpHandle k_select_v2{"SelectV2"};
inline constexpr OpHandle k_sigmoid{"Sigmoid"};
inline constexpr OpHandle k_slice{"Slice"};
inline constexpr OpHandle k_softmax{"Softmax"};
inline constexpr OpHandle k_softmax_loss{"SoftmaxLoss"};
inline constexpr OpHandle k_softmax_cross_entropy_with_logits{"SoftmaxCrossEntropyWithLogits"};
inline constexpr OpHandle k_sub{"Sub"};
inline constexpr OpHandle k_squared_norms{"SquaredNorms"};
inline constexpr OpHandle k_sum{"Sum"};
inline constexpr OpHandle k_tile{"Tile"};
inline constexpr OpHandle k_transpose{"Transpose"};
inline constexpr OpHandle k_var_handle_op{"VarHandleOp"};

}  // namespace ops
}  // namespace halfstep::graph

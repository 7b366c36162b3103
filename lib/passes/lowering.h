#pragma once
// The passes of the stage lowering, in the order in which plan/pipeline.cc runs them.

#include "graph/graph.h"
#include "graph/op_handles.h"
#include "passes/target.h"

namespace halfstep::passes {

/// The graph without nodes that no fetch and no update depends on. Order and names are kept.
graph::Graph prune(const graph::Graph& graph);
/// The nodes of one op, and those that they depend on, without fetches.
graph::Graph prune_to(graph::Graph graph, graph::OpHandle op);

/// Replaces the ops of attention (matmul, causal mask, mask of keys, Softmax, dropout, matmul) by a
/// FusedAttention, and those of its gradient by a FusedAttentionGrad, if nothing else reads scores
/// or weights, a kernel accepts both, and the target's blocks of scores would be at least half
/// full. No [queries, keys] tensor is stored: memory grows linearly with the sequence length. Not
/// bit-identical: scores, gradients of weights and the factor of the query are not rounded to 16
/// bits, and sums have another order. Scores that overflow float16 do not make the step overflow. A
/// query that sees only padding has the result 0 instead of the mean of the values after it.
graph::Graph fuse_attention(const graph::Graph& graph, const Target& target);

/// Replaces a conjunction of All(IsFinite(x)) terms by one AllFinite over the xs, which reads each
/// gradient once and stores no tensor of flags. The value is the same.
graph::Graph fuse_finite(const graph::Graph& graph, const Target& target);

/// Moves the Cast of a reshaped result of an elementwise op before the Reshape, where neither has
/// another user: the op can then store its result cast. The values are the same.
graph::Graph hoist_casts(const graph::Graph& graph, const Target& target);

/// Fuses the Relu after a FusedBatchNormV3, or the AddV2 and Relu, into it, and the ReluGrad before
/// its gradient into the gradient; the AddV2 before a LayerNorm into it, and the sums before and
/// after its gradient into the gradient, where a kernel accepts the result. Bit-identical.
graph::Graph fuse_norms(const graph::Graph& graph, const Target& target);

/// Rewrites MaxPool(Relu(x)) as Relu(MaxPool(x)), where nothing but the MaxPool and its gradient
/// read the Relu; ReluGrad then runs before MaxPoolGrad. Both Relu and ReluGrad pass over fewer
/// elements. Exact: max and ReLU commute, and the gradient is zero wherever the pooled value is
/// zero.
graph::Graph swap_relu_maxpool(const graph::Graph& graph, const Target& target);

/// Fuses a Conv2D and the BiasAdd after it into one Conv2DBias, and the Relu after both into a
/// Conv2DBiasRelu, where a kernel accepts it.
///
/// Changes numerics: where the graph rounds to 16 bits after the convolution, after the bias and
/// after the activation, the fused op rounds once.
graph::Graph fuse_convolutions(const graph::Graph& graph, const Target& target);

/// Makes the sums of squares of several values one SquaredNorms, where a kernel accepts it: the
/// norms of all gradients, or the L2 penalties of all weights. The sums have another order.
graph::Graph group_squares(const graph::Graph& graph, const Target& target);

/// Lets optimizer updates, the finite check and SquaredNorms read gradients as the matmuls store
/// them: the cast to float32 and the multiplications by scalars (unscaling, clipping by norm)
/// before an update become part of a FusedUpdate, and of AllFinite and SquaredNorms, if their
/// results have no other users. Bit-identical, unless gradients are clipped and the loss scale is
/// not a power of two: the two factors are then multiplied first.
graph::Graph fuse_updates(const graph::Graph& graph, const Target& target);

/// Merges ops of one element that have the same inputs and attributes, such as the powers of Adam's
/// betas, which each variable's update computes. A constant LearningRate becomes a Const.
/// Bit-identical.
graph::Graph merge_scalars(const graph::Graph& graph, const Target& target);

/// Makes a Softmax of logits, their sparse cross-entropy, its mean, the count of correct rows and
/// the gradient of the logits one SoftmaxLoss, where a kernel accepts it: the logits are read once.
/// The weights keep their bits; the mean is summed in another order.
graph::Graph fuse_softmax_loss(const graph::Graph& graph, const Target& target);

/// Makes the updates of all variables by one rule and the same hyperparameters one GroupedUpdate,
/// where a kernel accepts it: one launch, however many variables a model has. A cast of a float32
/// variable to 16 bits becomes a CastVariable, which the update writes together with the variable,
/// so that a step does not read its weights again to cast them. It computes the powers of Adam's
/// betas itself, and adds the gradients of L2 penalties. Bit-identical, except that the finite
/// check does not see a sum with such a gradient that overflows float32: weights of about 1e37.
graph::Graph group_updates(const graph::Graph& graph, const Target& target);

/// Pads the rows of the 16-bit logits of a SoftmaxLoss, of the weights and bias of their layer and
/// of their gradients with zeros to the target's multiple: cuBLASLt does not use tensor cores for
/// rows of ten classes, and padded copies would cost launches. Applies if only the matmuls of the
/// layer, the finite check, the norms and the update read them. Not bit-identical if a library
/// chooses another algorithm.
graph::Graph pad_logits(const graph::Graph& graph, const Target& target);

/// Makes the moving averages of all layers one MovingAverages, and lets UpdateLossScale count the
/// steps, where a kernel accepts them: on a device a small launch costs as much as a large one.
/// Bit-identical.
graph::Graph group_assignments(const graph::Graph& graph, const Target& target);

/// Turns each 16-bit MatMul into a PackedMatMul over packed operands if packing pays and
/// share_widened would not make it a float32 MatMul that beats packing. An operand that several
/// matmuls use in the same layout, with or without a Reshape, is packed once. A cast operand is
/// packed directly from float32, unless an elementwise op computes it and can store it cast.
graph::Graph pack_matmuls(const graph::Graph& graph, const Target& target);

/// Sets the attribute `float16_products` of float16 convolutions, whose kernels pack operands
/// themselves.
graph::Graph set_float16_products(const graph::Graph& graph, const Target& target);

/// Fuses the ops after a PackedMatMul into its epilogue: BiasAdd and Relu forward; backward the
/// ReluGrad of a Relu that is itself fused into a matmul; then the column sums of BiasAddGrad,
/// casts to float32 and packing for other matmuls, as further outputs of the same pass. Outputs
/// without users, in particular the row-major result, are not written. AllFinite reads the
/// max-norms of the matmul's blocks, a thousandth of the result, with the same answer.
///
/// Changes numerics: where the graph rounds to 16 bits after the matmul, after the bias and after
/// the activation, the fused matmul rounds once, at the end.
graph::Graph fuse_packed_epilogue(const graph::Graph& graph, const Target& target);

/// Fuses a MatMul and its neighbours into one FusedMatMul, where a kernel accepts it. Forward: the
/// BiasAdd and Relu after it, or after the Reshape that makes its rows those of a sequence.
/// Backward: the ReluGrad after it, when the Relu is fused into a matmul itself, with the bias
/// gradient that sums its result; and, into the matmul of a weight gradient, the bias gradient that
/// sums the same dy.
///
/// Changes numerics: where the graph rounds to 16 bits after the matmul, after the bias and after
/// the activation, the fused matmul rounds once, at the end.
graph::Graph fuse_library_epilogue(const graph::Graph& graph, const Target& target);

/// Keeps packed float32 variables across steps: the PackOperand of a variable becomes a
/// PackedVariable, which the FusedUpdate writes together with the variable. Variables with other
/// writers, and packings without a kernel for the PackedVariable, do not change.
graph::Graph persist_packed_weights(const graph::Graph& graph, const Target& target);

/// Fuses a PackedMatMul and the FusedUpdate of a weight, its only user, into one
/// PackedMatMulUpdate, where the update depends on no other gradient: the gradient is applied as it
/// is computed and never stored. The node is inserted after the last use of the old weight, so that
/// the operands need not live until the end of the step. Matmuls for which there is no kernel are
/// unchanged. Bit-identical.
graph::Graph fuse_update_into_matmul(const graph::Graph& graph, const Target& target);

/// Lets a PackedMatMul read a row-major operand a that only it uses packed, where a kernel packs it
/// while it multiplies: no packed copy goes through memory. Bit-identical.
graph::Graph fuse_packing_into_matmul(const graph::Graph& graph, const Target& target);

/// Replaces a 16-bit matmul whose kernel converts its operands to float32 by a float32 matmul
/// between casts, if its operands and result take at most 64 MiB each as float32. A value is then
/// widened once for all readers, in the elementwise op that computes it if there is one, and is not
/// stored in 16 bits if all readers accept it rounded to 16 bits but stored as float32.
/// Bit-identical, unless the float32 kernel adds in another order: with AVX512-BF16, outer products
/// for weight gradients in bfloat16.
graph::Graph share_widened(const graph::Graph& graph, const Target& target);

/// Fuses the Cast of 16-bit values to float32 into the BiasAddGrad that alone reads it, as a
/// CastBiasAddGrad where a kernel accepts it. No float32 copy is stored. Bit-identical.
graph::Graph fuse_casts_into_sums(const graph::Graph& graph, const Target& target);

/// Starts exchanges between ranks in the order of their attribute, which is equal on all ranks
/// whatever kernels they chose: an AllReduceStart or ReduceScatterStart directly after the last op
/// that computes its values, or after the exchange before it in that order. Sharded weights are
/// gathered at the start of the next step, each before the first op that reads it, so that the
/// gather overlaps earlier layers. Bit-identical.
graph::Graph start_sums_early(const graph::Graph& graph, const Target& target);

/// Fuses elementwise ops of one shape that read each other's results into one FusedElementwise,
/// within one phase of the step (forward with loss and metrics, backward, unscaling, update), if a
/// kernel accepts each of them. Intermediate values that only they use are not stored.
/// Bit-identical.
graph::Graph fuse_elementwise(const graph::Graph& graph, const Target& target);

}  // namespace halfstep::passes

#pragma once
// The op table, and builder calls that ops and layers share. One file per op family; each returns
// its definitions to table.cc.

#include <optional>
#include <vector>

#include "graph/builder.h"

namespace halfstep::graph {

/// All ops, executable or not.
const OpTable& op_table();

namespace ops {

// The definitions of each family, concatenated by table.cc.
std::vector<OpDef> activation_ops();
std::vector<OpDef> ahead_ops();
std::vector<OpDef> array_ops();
std::vector<OpDef> attention_ops();
std::vector<OpDef> binary_ops();
std::vector<OpDef> collective_ops();
std::vector<OpDef> conv_ops();
std::vector<OpDef> elementwise_ops();
std::vector<OpDef> imported_ops();
std::vector<OpDef> fused_ops();
std::vector<OpDef> image_ops();
std::vector<OpDef> matmul_ops();
std::vector<OpDef> norm_ops();
std::vector<OpDef> packed_ops();
std::vector<OpDef> pool_ops();
std::vector<OpDef> random_ops();
std::vector<OpDef> recurrent_ops();
std::vector<OpDef> reduce_ops();
std::vector<OpDef> scaling_ops();
std::vector<OpDef> softmax_ops();
std::vector<OpDef> state_ops();
std::vector<OpDef> unary_ops();
std::vector<OpDef> update_ops();

/// Sum, Mean, Max, ... over `axes` (all of them when absent).
Value reduce(Builder& b,
             std::string_view op,
             Value x,
             std::optional<std::vector<std::int64_t>> axes = {},
             bool keep_dims = false);

/// `x` with another shape of as many elements; `x` itself when it has that shape.
Value reshape(Builder& b, Value x, const Shape& shape);

/// The gradient of a broadcast: `dy` summed over the axes along which `shape` was broadcast, then
/// reshaped to `shape`. TensorFlow's own gradients do the same with Sum and Reshape.
Value unbroadcast(Builder& b, Value dy, const Shape& shape);

/// Starts the all-reduce of the values over `ranks` ranks, packed into one tensor of this dtype.
Value start_all_reduce(Builder& b, std::vector<Value> values, DType dtype, std::int64_t ranks);

/// Waits for the all-reduce; returns the sums as tensors of these shapes and dtypes.
std::vector<Value> wait_for_all_reduce(Builder& b, Value sum, const std::vector<TensorType>& types);
/// The phases of the collective that a node starts: 2 (reduce-scatter and all-gather) for an
/// AllReduceStart, 1 for a ReduceScatterStart or AllGatherStart, 0 for other ops.
int collective_phases(const Node& node);
/// The elements of a rank's shard of a tensor that is sharded over the ranks.
std::int64_t slice_elements(std::int64_t elements, std::int64_t ranks);

/// The types of values.
std::vector<TensorType> types_of(const Builder& b, const std::vector<Value>& values);

/// The number of tensor operands of this op inside the body of a FusedElementwise; 0 for ops that
/// cannot be fused. Further inputs that the op has in a graph are shapes.
std::size_t elementwise_operands(std::string_view op);

/// The sum of the gradients of one value: the gradient itself, AddV2 of two, or AddN.
Value accumulate(Builder& b, const std::vector<Value>& gradients);

}  // namespace ops
}  // namespace halfstep::graph

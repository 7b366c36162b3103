// Shapes, slices, gathers, sparse and ragged tensors; syntax: imported_ops.h.

#include "graph/ops/imported_ops.h"

namespace halfstep::graph::ops {

const std::string_view k_imported_array = R"(
BroadcastArgs(s0: T, s1: T -> r0: T) T: {int32, int64} = int32
BroadcastGradientArgs(s0: T, s1: T -> r0: T, r1: T) T: {int32, int64} = int32
Concat(concat_dim: int32, values: N*T -> output: T) N: int, T: type
ConcatOffset(concat_dim: int32, shape: N*shape_type -> offset: N*shape_type) N: int,
    shape_type: {int32, int64} = int32
ConjugateTranspose(x: T, perm: Tperm -> y: T) T: type, Tperm: {int32, int64} = int32
DeepCopy!(x: T -> y: T) T: type
DynamicPartition(data: T, partitions: int32 -> outputs: num_partitions*T) num_partitions: int,
    T: type
DynamicStitch(indices: N*int32, data: N*T -> merged: T) N: int, T: type
Empty!(shape: int32 -> output: dtype) dtype: type, init: bool = false
Gather(params: Tparams, indices: Tindices -> output: Tparams) validate_indices: bool = true,
    Tparams: type, Tindices: {int32, int64}
GatherNd(params: Tparams, indices: Tindices -> output: Tparams) Tparams: type,
    Tindices: {int16, int32, int64}, bad_indices_policy: string = ''
IdentityN(input: T -> output: T) T: list(type)
InplaceAdd(x: T, i: int32, v: T -> y: T) T: type
InplaceSub(x: T, i: int32, v: T -> y: T) T: type
InplaceUpdate(x: T, i: int32, v: T -> y: T) T: type
InvertPermutation(x: T -> y: T) T: {int32, int64} = int32
LinSpace(start: T, stop: T, num: Tidx -> output: T) T: floattype, Tidx: {int32, int64} = int32
ListDiff(x: T, y: T -> out: T, idx: out_idx) T: type, out_idx: {int32, int64} = int32
LowerBound(sorted_inputs: T, values: T -> output: out_type) T: type,
    out_type: {int32, int64} = int32
MirrorPad(input: T, paddings: Tpaddings -> output: T) T: type, Tpaddings: {int32, int64} = int32,
    mode: string
MirrorPadGrad(input: T, paddings: Tpaddings -> output: T) T: type,
    Tpaddings: {int32, int64} = int32, mode: string
Pack(values: N*T -> output: T) N: int, T: type, axis: int = 0
ParallelConcat(values: N*T -> output: T) N: int, T: type, shape: shape
ParallelDynamicStitch(indices: N*int32, data: N*T -> merged: T) N: int, T: type
RaggedGather(params_nested_splits: PARAMS_RAGGED_RANK*Tsplits, params_dense_values: Tvalues,
    indices: Tindices -> output_nested_splits: OUTPUT_RAGGED_RANK*Tsplits,
    output_dense_values: Tvalues) Tvalues: type, Tindices: {int32, int64},
    Tsplits: {int32, int64} = int64, PARAMS_RAGGED_RANK: int, OUTPUT_RAGGED_RANK: int
RaggedRange(starts: T, limits: T, deltas: T -> rt_nested_splits: Tsplits,
    rt_dense_values: T) T: {bfloat16, float, double, int32, int64} = int32,
    Tsplits: {int32, int64} = int64
RaggedTensorToTensor(shape: Tshape, values: T, default_value: T,
    row_partition_tensors: num_row_partition_tensors*Tindex -> result: T) T: type,
    Tindex: {int32, int64}, Tshape: {int32, int64}, num_row_partition_tensors: int,
    row_partition_types: string
RaggedTensorToVariant(rt_nested_splits: RAGGED_RANK*Tsplits,
    rt_dense_values: Tvalues -> encoded_ragged: variant) RAGGED_RANK: int, Tvalues: type,
    Tsplits: {int32, int64} = int64, batched_input: bool
Range(start: Tidx, limit: Tidx,
    delta: Tidx -> output: Tidx) Tidx: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint16, uint32, uint64} = int32
Rank(input: T -> output: int32) T: type
Reverse(tensor: T,
    dims: bool -> output: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, bool, complex64, complex128, string}
ReverseSequence(input: T, seq_lengths: Tlen -> output: T) seq_dim: int, batch_dim: int = 0, T: type,
    Tlen: {int32, int64} = int64
Roll(input: T, shift: Tshift, axis: Taxis -> output: T) T: type, Tshift: {int32, int64},
    Taxis: {int32, int64}
ScatterNd(indices: Tindices, updates: T, shape: Tindices -> output: T) T: type,
    Tindices: {int16, int32, int64}, bad_indices_policy: string = ''
ScatterNdNonAliasingAdd(input: T, indices: Tindices,
    updates: T -> output: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, bool, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    Tindices: {int32, int64}, bad_indices_policy: string = ''
ShapeN(input: N*T -> output: N*out_type) N: int, T: type, out_type: {int32, int64} = int32
Size(input: T -> output: out_type) T: type, out_type: {int32, int64} = int32
Snapshot(input: T -> output: T) T: type
SparseAdd(a_indices: int64, a_values: T, a_shape: int64, b_indices: int64, b_values: T,
    b_shape: int64, thresh: Treal -> sum_indices: int64, sum_values: T,
    sum_shape: int64) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Treal: realnumbertype
SparseConcat(indices: N*int64, values: N*T, shapes: N*int64 -> output_indices: int64,
    output_values: T, output_shape: int64) concat_dim: int, N: int, T: type
SparseFillEmptyRows(indices: int64, values: T, dense_shape: int64,
    default_value: T -> output_indices: int64, output_values: T, empty_row_indicator: bool,
    reverse_index_map: int64) T: type
SparseFillEmptyRowsGrad(reverse_index_map: int64, grad_values: T -> d_values: T,
    d_default_value: T) T: type
SparseReduceSum(input_indices: int64, input_values: T, input_shape: int64,
    reduction_axes: int32 -> output: T) keep_dims: bool = false,
    T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
        complex64, complex128, qint8, quint8, qint16, quint16, qint32}
SparseReorder(input_indices: int64, input_values: T, input_shape: int64 -> output_indices: int64,
    output_values: T) T: type
SparseReshape(input_indices: int64, input_shape: int64, new_shape: int64 -> output_indices: int64,
    output_shape: int64)
SparseSlice(indices: int64, values: T, shape: int64, start: int64,
    size: int64 -> output_indices: int64, output_values: T, output_shape: int64) T: type
SparseSoftmax(sp_indices: int64, sp_values: T,
    sp_shape: int64 -> output: T) T: {half, float, double}
SparseToDense(sparse_indices: Tindices, output_shape: Tindices, sparse_values: T,
    default_value: T -> dense: T) validate_indices: bool = true, T: type, Tindices: {int32, int64}
SplitV(value: T, size_splits: Tlen, split_dim: int32 -> output: num_split*T) num_split: int,
    T: type, Tlen: {int8, int32, int64} = int64
StridedSlice(input: T, begin: Index, end: Index, strides: Index -> output: T) T: type,
    Index: {int16, int32, int64}, begin_mask: int = 0, end_mask: int = 0, ellipsis_mask: int = 0,
    new_axis_mask: int = 0, shrink_axis_mask: int = 0
StridedSliceGrad(shape: Index, begin: Index, end: Index, strides: Index,
    dy: T -> output: T) T: type, Index: {int32, int64}, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0
TensorScatterAdd(tensor: T, indices: Tindices, updates: T -> output: T) T: type,
    Tindices: {int32, int64}, bad_indices_policy: string = ''
TensorScatterMax(tensor: T, indices: Tindices, updates: T -> output: T) T: type,
    Tindices: {int32, int64}, bad_indices_policy: string = ''
TensorScatterMin(tensor: T, indices: Tindices, updates: T -> output: T) T: type,
    Tindices: {int32, int64}, bad_indices_policy: string = ''
TensorScatterSub(tensor: T, indices: Tindices, updates: T -> output: T) T: type,
    Tindices: {int32, int64}, bad_indices_policy: string = ''
TensorScatterUpdate(tensor: T, indices: Tindices, updates: T -> output: T) T: type,
    Tindices: {int16, int32, int64, uint16}, bad_indices_policy: string = ''
TensorStridedSliceUpdate(input: T, begin: Index, end: Index, strides: Index,
    value: T -> output: T) T: type, Index: {int32, int64}, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0
TileGrad(input: T, multiples: int32 -> output: T) T: type
TopK(input: T -> values: T, indices: int32) k: int, sorted: bool = true, T: realnumbertype
TopKV2(input: T, k: Tk -> values: T, indices: index_type) sorted: bool = true, T: realnumbertype,
    Tk: {int16, int32, int64} = int32, index_type: {int16, int32, int64} = int32
Unique(x: T -> y: T, idx: out_idx) T: type, out_idx: {int32, int64} = int32
UniqueV2(x: T, axis: Taxis -> y: T, idx: out_idx) T: type, Taxis: {int32, int64} = int64,
    out_idx: {int32, int64} = int32
UniqueWithCounts(x: T -> y: T, idx: out_idx, count: out_idx) T: type,
    out_idx: {int32, int64} = int32
UniqueWithCountsV2(x: T, axis: Taxis -> y: T, idx: out_idx, count: out_idx) T: type,
    Taxis: {int32, int64} = int64, out_idx: {int32, int64} = int32
Unpack(value: T -> output: num*T) num: int, T: type, axis: int = 0
UnravelIndex(indices: Tidx, dims: Tidx -> output: Tidx) Tidx: {int32, int64} = int32
UpperBound(sorted_inputs: T, values: T -> output: out_type) T: type,
    out_type: {int32, int64} = int32
Where(input: T -> index: int64) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, bool, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32} = bool
)";

}  // namespace halfstep::graph::ops

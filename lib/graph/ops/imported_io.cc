// Tables, queues, input, checkpoints, summaries, strings and collectives; syntax: imported_ops.h.

#include "graph/ops/imported_ops.h"

namespace halfstep::graph::ops {

const std::string_view k_imported_io = R"(
AnonymousIteratorV3!(-> handle: resource) output_types: list(type), output_shapes: string
AsString(input: T -> output: string) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, bool, complex64, complex128, string, variant},
    precision: int = -1, scientific: bool = false, shortest: bool = false, width: int = -1,
    fill: string = ''
CollectiveBcastRecv!(-> data: T) T: {half, float, double, int32, int64, bool}, group_size: int,
    group_key: int, instance_key: int, shape: shape, communication_hint: string = 'auto',
    timeout_seconds: float = 0
CollectiveBcastSend!(input: T -> data: T) T: {half, float, double, int32, int64, bool},
    group_size: int, group_key: int, instance_key: int, shape: shape,
    communication_hint: string = 'auto', timeout_seconds: float = 0
CollectiveGather!(input: T -> data: T) T: {half, float, double, int32, int64}, group_size: int,
    group_key: int, instance_key: int, shape: shape, communication_hint: string = 'auto',
    timeout_seconds: float = 0
CollectiveReduce!(input: T -> data: T) T: {half, bfloat16, float, double, int32, int64},
    group_size: int, group_key: int, instance_key: int, merge_op: string, final_op: string,
    subdiv_offsets: list(int), wait_for: list(int) = [], communication_hint: string = 'auto',
    timeout_seconds: float = 0
CollectiveReduceV2!(input: T, group_size: int32, group_key: int32, instance_key: int32,
    ordering_token: Nordering_token*resource -> data: T) T: {half, bfloat16, float, double, int32,
        int64},
    merge_op: string, final_op: string, communication_hint: string = 'auto',
    timeout_seconds: float = 0, is_stateless: bool = false, Nordering_token: int = 0,
    max_subdivs_per_device: int = -1
DecodeImage(contents: string -> image: dtype) channels: int = 0,
    dtype: {float, uint8, uint16} = uint8, expand_animations: bool = true
DecodeJpeg(contents: string -> image: uint8) channels: int = 0, ratio: int = 1,
    fancy_upscaling: bool = true, try_recover_truncated: bool = false,
    acceptable_fraction: float = 1, dct_method: string = ''
DecodePng(contents: string -> image: dtype) channels: int = 0, dtype: {uint8, uint16} = uint8
DecodeRaw(bytes: string -> output: out_type) out_type: {half, bfloat16, float, double, int8, int16,
        int32, int64, uint8, uint16, bool, complex64, complex128},
    little_endian: bool = true
FIFOQueueV2!(-> handle: resource) component_types: list(type), shapes: string = '',
    capacity: int = -1, container: string = '', shared_name: string = ''
HashTableV2!(-> table_handle: resource) container: string = '', shared_name: string = '',
    use_node_name_sharing: bool = false, key_dtype: type, value_dtype: type
HistogramSummary(tag: string, values: T -> summary: string) T: realnumbertype = float
ImageSummary(tag: string, tensor: T -> summary: string) max_images: int = 3,
    T: {half, float, double, uint8} = float, bad_color: string = ''
InitializeTableV2!(table_handle: resource, keys: Tkey, values: Tval) Tkey: type, Tval: type
IteratorGetNext!(iterator: resource -> components: output_types) output_types: list(type),
    output_shapes: string
IteratorGetNextAsOptional!(iterator: resource -> optional: variant) output_types: list(type),
    output_shapes: string
IteratorGetNextSync!(iterator: resource -> components: output_types) output_types: list(type),
    output_shapes: string
IteratorV2!(-> handle: resource) shared_name: string, container: string, output_types: list(type),
    output_shapes: string
LookupTableExportV2!(table_handle: resource -> keys: Tkeys, values: Tvalues) Tkeys: type,
    Tvalues: type
LookupTableFindV2!(table_handle: resource, keys: Tin,
    default_value: Tout -> values: Tout) Tin: type, Tout: type
LookupTableImportV2!(table_handle: resource, keys: Tin, values: Tout) Tin: type, Tout: type
LookupTableInsertV2!(table_handle: resource, keys: Tin, values: Tout) Tin: type, Tout: type
LookupTableSizeV2!(table_handle: resource -> size: int64)
MakeIterator!(dataset: variant, iterator: resource)
MatchingFiles(pattern: string -> filenames: string)
MergeSummary(inputs: N*string -> summary: string) N: int
MergeV2Checkpoints!(checkpoint_prefixes: string,
    destination_prefix: string) delete_old_dirs: bool = true, allow_missing_files: bool = false
MutableHashTableV2!(-> table_handle: resource) container: string = '', shared_name: string = '',
    use_node_name_sharing: bool = false, key_dtype: type, value_dtype: type
NcclAllReduce!(input: T -> data: T) reduction: string, T: {half, float, double, int32, int64},
    num_devices: int, shared_name: string
OneShotIterator!(-> handle: resource) dataset_factory: string, output_types: list(type),
    output_shapes: string, container: string = '', shared_name: string = ''
PaddingFIFOQueueV2!(-> handle: resource) component_types: list(type), shapes: string = '',
    capacity: int = -1, container: string = '', shared_name: string = ''
ParseExampleV2(serialized: string, names: string, sparse_keys: string, dense_keys: string,
    ragged_keys: string, dense_defaults: Tdense -> sparse_indices: num_sparse*int64,
    sparse_values: sparse_types, sparse_shapes: num_sparse*int64, dense_values: Tdense,
    ragged_values: ragged_value_types,
    ragged_row_splits: ragged_split_types) Tdense: list({float, int64, string}), num_sparse: int,
    sparse_types: list({float, int64, string}), ragged_value_types: list({float, int64, string}),
    ragged_split_types: list({int32, int64}), dense_shapes: string
ParseSingleExample(serialized: string, dense_defaults: Tdense -> sparse_indices: num_sparse*int64,
    sparse_values: sparse_types, sparse_shapes: num_sparse*int64,
    dense_values: Tdense) num_sparse: int, sparse_keys: string, dense_keys: string,
    sparse_types: list({float, int64, string}), Tdense: list({float, int64, string}),
    dense_shapes: string
QueueCloseV2!(handle: resource) cancel_pending_enqueues: bool = false
QueueDequeueManyV2!(handle: resource,
    n: int32 -> components: component_types) component_types: list(type), timeout_ms: int = -1
QueueDequeueUpToV2!(handle: resource,
    n: int32 -> components: component_types) component_types: list(type), timeout_ms: int = -1
QueueDequeueV2!(handle: resource -> components: component_types) component_types: list(type),
    timeout_ms: int = -1
QueueEnqueueManyV2!(handle: resource, components: Tcomponents) Tcomponents: list(type),
    timeout_ms: int = -1
QueueEnqueueV2!(handle: resource, components: Tcomponents) Tcomponents: list(type),
    timeout_ms: int = -1
QueueSizeV2!(handle: resource -> size: int32)
RandomShuffleQueueV2!(-> handle: resource) component_types: list(type), shapes: string = '',
    capacity: int = -1, min_after_dequeue: int = 0, seed: int = 0, seed2: int = 0,
    container: string = '', shared_name: string = ''
ReadFile(filename: string -> contents: string)
ReaderReadV2!(reader_handle: resource, queue_handle: resource -> key: string, value: string)
RegexReplace(input: string, pattern: string,
    rewrite: string -> output: string) replace_global: bool = true
Restore!(file_pattern: string, tensor_name: string -> tensor: dt) dt: type,
    preferred_shard: int = -1
RestoreSlice!(file_pattern: string, tensor_name: string,
    shape_and_slice: string -> tensor: dt) dt: type, preferred_shard: int = -1
RestoreV2!(prefix: string, tensor_names: string,
    shape_and_slices: string -> tensors: dtypes) dtypes: list(type)
Save!(filename: string, tensor_names: string, data: T) T: list(type)
SaveSlices!(filename: string, tensor_names: string, shapes_and_slices: string,
    data: T) T: list(type)
SaveV2!(prefix: string, tensor_names: string, shape_and_slices: string,
    tensors: dtypes) dtypes: list(type)
ScalarSummary(tags: string, values: T -> summary: string) T: realnumbertype
ShardedFilename(basename: string, shard: int32, num_shards: int32 -> filename: string)
StringFormat(inputs: T -> output: string) T: list(type), template: string = '%s',
    placeholder: string = '%s', summarize: int = 3
StringJoin(inputs: N*string -> output: string) N: int, separator: string = ''
StringLower(input: string -> output: string) encoding: string = ''
StringSplitV2(input: string, sep: string -> indices: int64, values: string,
    shape: int64) maxsplit: int = -1
StringToHashBucketFast(input: string -> output: int64) num_buckets: int
StringToNumber(string_tensor: string -> output: out_type) out_type: {float, double, int32, int64,
        uint32, uint64} = float
Substr(input: string, pos: T, len: T -> output: string) T: {int32, int64}, unit: string = 'BYTE'
TFRecordReaderV2!(-> reader_handle: resource) container: string = '', shared_name: string = '',
    compression_type: string = ''
TensorSummaryV2(tag: string, tensor: T,
    serialized_summary_metadata: string -> summary: string) T: type
WholeFileReaderV2!(-> reader_handle: resource) container: string = '', shared_name: string = ''
WriteFile!(filename: string, contents: string)
WriteHistogramSummary!(writer: resource, step: int64, tag: string,
    values: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32,
        uint64, bool} = float
WriteScalarSummary!(writer: resource, step: int64, tag: string, value: T) T: realnumbertype
WriteSummary!(writer: resource, step: int64, tensor: T, tag: string,
    summary_metadata: string) T: type
)";

}  // namespace halfstep::graph::ops

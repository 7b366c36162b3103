// Control flow, functions, tensor lists and arrays; syntax: imported_ops.h.

#include "graph/ops/imported_ops.h"

namespace halfstep::graph::ops {

const std::string_view k_imported_flow = R"(
Abort() error_msg: string = '', exit_without_error: bool = false
AccumulateNV2(inputs: N*T -> sum: T) N: int,
    T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
        complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    shape: shape
_Arg!(-> output: T) T: type, index: int
Assert!(condition: bool, data: T) T: list(type), summarize: int = 3
Case!(branch_index: int32, input: Tin -> output: Tout) Tin: list(type), Tout: list(type),
    branches: string, output_shapes: string = ''
ControlTrigger()
_DeviceArg!(-> output: T) T: type, index: int
DeviceIndex!(-> index: int32) device_names: string
_DeviceRetval!(input: T) T: type, index: int
EagerPyFunc!(input: Tin -> output: Tout) token: string, is_async: bool = false, Tin: list(type),
    Tout: list(type)
EmptyTensorList(element_shape: shape_type,
    max_num_elements: int32 -> handle: variant) element_dtype: type, shape_type: {int32, int64}
EmptyTensorMap(-> handle: variant)
EnsureShape(input: T -> output: T) shape: shape, T: type
Enter(data: T -> output: T) T: type, frame_name: string, is_constant: bool = false,
    parallel_iterations: int = 10
Exit(data: T -> output: T) T: type
FakeParam(-> output: dtype) dtype: type, shape: shape
For(start: int32, limit: int32, delta: int32, input: T -> output: T) T: list(type), body: string
GuaranteeConst!(input: T -> output: T) T: type
HostConst(-> output: dtype) value: string, dtype: type
_HostRecv!(-> tensor: tensor_type) tensor_type: type, tensor_name: string, send_device: string,
    send_device_incarnation: int, recv_device: string, client_terminated: bool = false
_HostSend!(tensor: T) T: type, tensor_name: string, send_device: string,
    send_device_incarnation: int, recv_device: string, client_terminated: bool = false
If!(cond: Tcond, input: Tin -> output: Tout) Tcond: type, Tin: list(type), Tout: list(type),
    then_branch: string, else_branch: string, output_shapes: string = ''
ImmutableConst(-> tensor: dtype) dtype: type, shape: shape, memory_region_name: string
LoopCond(input: bool -> output: bool)
Merge(inputs: N*T -> output: T, value_index: int32) T: type, N: int
NextIteration(data: T -> output: T) T: type
NoOp()
OptionalFromValue(components: Toutput_types -> optional: variant) Toutput_types: list(type)
OptionalGetValue(optional: variant -> components: output_types) output_types: list(type),
    output_shapes: string
OptionalHasValue(optional: variant -> has_value: bool)
OptionalNone(-> optional: variant)
PartitionedCall(args: Tin -> output: Tout) Tin: list(type), Tout: list(type), f: string,
    config: string = '', config_proto: string = '', executor_type: string = ''
PlaceholderV2(-> output: dtype) dtype: type, shape: shape
PlaceholderWithDefault(input: dtype -> output: dtype) dtype: type, shape: shape
Print!(input: T, data: U -> output: T) T: type, U: list(type), message: string = '',
    first_n: int = -1, summarize: int = 3
PrintV2!(input: string) output_stream: string = 'stderr', end: string = ''
PyFunc!(input: Tin -> output: Tout) token: string, Tin: list(type), Tout: list(type)
PyFuncStateless(input: Tin -> output: Tout) token: string, Tin: list(type), Tout: list(type)
_Recv!(-> tensor: tensor_type) tensor_type: type, tensor_name: string, send_device: string,
    send_device_incarnation: int, recv_device: string, client_terminated: bool = false
RefEnter(data: Ref(T) -> output: Ref(T)) T: type, frame_name: string, is_constant: bool = false,
    parallel_iterations: int = 10
RefExit(data: Ref(T) -> output: Ref(T)) T: type
RefIdentity(input: Ref(T) -> output: Ref(T)) T: type
RefNextIteration(data: Ref(T) -> output: Ref(T)) T: type
RefSwitch(data: Ref(T), pred: bool -> output_false: Ref(T), output_true: Ref(T)) T: type
RemoteCall!(target: string, args: Tin -> output: Tout) Tin: list(type), Tout: list(type), f: string
_Retval!(input: T) T: type, index: int
_Send!(tensor: T) T: type, tensor_name: string, send_device: string, send_device_incarnation: int,
    recv_device: string, client_terminated: bool = false
StackCloseV2!(handle: resource)
StackPopV2!(handle: resource -> elem: elem_type) elem_type: type
StackPushV2!(handle: resource, elem: T -> output: T) T: type, swap_memory: bool = false
StackV2!(max_size: int32 -> handle: resource) elem_type: type, stack_name: string = ''
StatefulPartitionedCall!(args: Tin -> output: Tout) Tin: list(type), Tout: list(type), f: string,
    config: string = '', config_proto: string = '', executor_type: string = ''
StatelessCase(branch_index: int32, input: Tin -> output: Tout) Tin: list(type), Tout: list(type),
    branches: string, output_shapes: string = ''
StatelessIf(cond: Tcond, input: Tin -> output: Tout) Tcond: type, Tin: list(type), Tout: list(type),
    then_branch: string, else_branch: string, output_shapes: string = ''
StatelessWhile(input: T -> output: T) T: list(type), cond: string, body: string,
    output_shapes: string = '', parallel_iterations: int = 10
StubResourceHandleOp!(-> resource: resource) container: string = '', shared_name: string = ''
Switch(data: T, pred: bool -> output_false: T, output_true: T) T: type
SymbolicGradient(input: Tin -> output: Tout) Tin: list(type), Tout: list(type), f: string
TensorArrayCloseV3!(handle: resource)
TensorArrayConcatV3!(handle: resource, flow_in: float -> value: dtype, lengths: int64) dtype: type,
    element_shape_except0: shape
TensorArrayGatherV3!(handle: resource, indices: int32, flow_in: float -> value: dtype) dtype: type,
    element_shape: shape
TensorArrayGradV3!(handle: resource, flow_in: float -> grad_handle: resource,
    flow_out: float) source: string
TensorArrayGradWithShape!(handle: resource, flow_in: float,
    shape_to_prepend: int32 -> grad_handle: resource, flow_out: float) source: string
TensorArrayReadV3!(handle: resource, index: int32, flow_in: float -> value: dtype) dtype: type
TensorArrayScatterV3!(handle: resource, indices: int32, value: T,
    flow_in: float -> flow_out: float) T: type
TensorArraySizeV3!(handle: resource, flow_in: float -> size: int32)
TensorArraySplitV3!(handle: resource, value: T, lengths: int64,
    flow_in: float -> flow_out: float) T: type
TensorArrayV3!(size: int32 -> handle: resource, flow: float) dtype: type, element_shape: shape,
    dynamic_size: bool = false, clear_after_read: bool = true,
    identical_element_shapes: bool = false, tensor_array_name: string = ''
TensorArrayWriteV3!(handle: resource, index: int32, value: T,
    flow_in: float -> flow_out: float) T: type
TensorListConcat(input_handle: variant -> tensor: element_dtype,
    lengths: int64) element_dtype: type, element_shape: shape
TensorListConcatLists(input_a: variant, input_b: variant -> output: variant) element_dtype: type
TensorListConcatV2(input_handle: variant, element_shape: shape_type,
    leading_dims: int64 -> tensor: element_dtype, lengths: int64) element_dtype: type,
    shape_type: {int32, int64}
TensorListElementShape(input_handle: variant -> element_shape: shape_type) shape_type: {int32,
        int64}
TensorListFromTensor(tensor: element_dtype,
    element_shape: shape_type -> output_handle: variant) element_dtype: type,
    shape_type: {int32, int64}
TensorListGather(input_handle: variant, indices: int32,
    element_shape: int32 -> values: element_dtype) element_dtype: type
TensorListGetItem(input_handle: variant, index: int32,
    element_shape: Tshape -> item: element_dtype) element_dtype: type,
    Tshape: {int32, int64} = int32
TensorListLength(input_handle: variant -> length: int32)
TensorListPopBack(input_handle: variant, element_shape: int32 -> output_handle: variant,
    tensor: element_dtype) element_dtype: type
TensorListPushBack(input_handle: variant,
    tensor: element_dtype -> output_handle: variant) element_dtype: type
TensorListPushBackBatch(input_handles: variant,
    tensor: element_dtype -> output_handles: variant) element_dtype: type
TensorListReserve(element_shape: shape_type,
    num_elements: int32 -> handle: variant) element_dtype: type, shape_type: {int32, int64}
TensorListResize(input_handle: variant, size: int32 -> output_handle: variant)
TensorListScatter(tensor: element_dtype, indices: int32,
    element_shape: shape_type -> output_handle: variant) element_dtype: type,
    shape_type: {int32, int64}
TensorListScatterIntoExistingList(input_handle: variant, tensor: element_dtype,
    indices: int32 -> output_handle: variant) element_dtype: type
TensorListScatterV2(tensor: element_dtype, indices: int32, element_shape: shape_type,
    num_elements: int32 -> output_handle: variant) element_dtype: type, shape_type: {int32, int64}
TensorListSetItem(input_handle: variant, index: int32,
    item: element_dtype -> output_handle: variant) element_dtype: type,
    resize_if_index_out_of_bounds: bool = false
TensorListSplit(tensor: element_dtype, element_shape: shape_type,
    lengths: int64 -> output_handle: variant) element_dtype: type, shape_type: {int32, int64}
TensorListStack(input_handle: variant,
    element_shape: int32 -> tensor: element_dtype) element_dtype: type, num_elements: int = -1
TensorMapErase(input_handle: variant, key: key_dtype -> output_handle: variant) key_dtype: type,
    value_dtype: type
TensorMapHasKey(input_handle: variant, key: key_dtype -> has_key: bool) key_dtype: type
TensorMapInsert(input_handle: variant, key: key_dtype,
    value: value_dtype -> output_handle: variant) key_dtype: type, value_dtype: type
TensorMapLookup(input_handle: variant, key: key_dtype -> value: value_dtype) key_dtype: type,
    value_dtype: type
TensorMapSize(input_handle: variant -> size: int32)
Timestamp!(-> ts: double)
While!(input: T -> output: T) T: list(type), cond: string, body: string, output_shapes: string = '',
    parallel_iterations: int = 10
)";

}  // namespace halfstep::graph::ops

// Variables and optimizers; syntax: imported_ops.h.

#include "graph/ops/imported_ops.h"

namespace halfstep::graph::ops {

const std::string_view k_imported_state = R"(
ApplyAdaMax(var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, lr: T, beta1: T, beta2: T,
    epsilon: T,
    grad: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ApplyAdadelta(var: Ref(T), accum: Ref(T), accum_update: Ref(T), lr: T, rho: T, epsilon: T,
    grad: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ApplyAdagrad(var: Ref(T), accum: Ref(T), lr: T,
    grad: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false, update_slots: bool = true
ApplyAdagradDA(var: Ref(T), gradient_accumulator: Ref(T), gradient_squared_accumulator: Ref(T),
    grad: T, lr: T, l1: T, l2: T,
    global_step: int64 -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32,
        int64, uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16,
        quint16, qint32},
    use_locking: bool = false
ApplyAdagradV2(var: Ref(T), accum: Ref(T), lr: T, epsilon: T,
    grad: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false, update_slots: bool = true
ApplyAdam(var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, beta1: T,
    beta2: T, epsilon: T,
    grad: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false, use_nesterov: bool = false
ApplyAddSign(var: Ref(T), m: Ref(T), lr: T, alpha: T, sign_decay: T, beta: T,
    grad: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ApplyCenteredRMSProp(var: Ref(T), mg: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T,
    epsilon: T,
    grad: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ApplyFtrl(var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T,
    lr_power: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    use_locking: bool = false, multiply_linear_by_lr: bool = false
ApplyFtrlV2(var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, lr: T, l1: T, l2: T,
    l2_shrinkage: T,
    lr_power: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    use_locking: bool = false, multiply_linear_by_lr: bool = false
ApplyGradientDescent(var: Ref(T), alpha: T,
    delta: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ApplyMomentum(var: Ref(T), accum: Ref(T), lr: T, grad: T,
    momentum: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    use_locking: bool = false, use_nesterov: bool = false
ApplyPowerSign(var: Ref(T), m: Ref(T), lr: T, logbase: T, sign_decay: T, beta: T,
    grad: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ApplyProximalAdagrad(var: Ref(T), accum: Ref(T), lr: T, l1: T, l2: T,
    grad: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ApplyProximalGradientDescent(var: Ref(T), alpha: T, l1: T, l2: T,
    delta: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ApplyRMSProp(var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T,
    grad: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
Assign(ref: Ref(T), value: T -> output_ref: Ref(T)) T: type, validate_shape: bool = true,
    use_locking: bool = true
AssignAdd(ref: Ref(T),
    value: T -> output_ref: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    use_locking: bool = false
AssignSub(ref: Ref(T),
    value: T -> output_ref: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    use_locking: bool = false
AssignSubVariableOp!(resource: resource, value: dtype) dtype: type
CountUpTo(ref: Ref(T) -> output: T) limit: int, T: {int32, int64}
DestroyResourceOp!(resource: resource) ignore_lookup_error: bool = true
DestroyTemporaryVariable(ref: Ref(T) -> value: T) T: type, var_name: string
DisableCopyOnRead!(resource: resource)
IsVariableInitialized(ref: Ref(dtype) -> is_initialized: bool) dtype: type
_ReadVariablesOp!(resources: N*resource -> values: dtypes) N: int, dtypes: list(type)
ResourceApplyAdaMax!(var: resource, m: resource, v: resource, beta1_power: T, lr: T, beta1: T,
    beta2: T, epsilon: T,
    grad: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32,
        uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ResourceApplyAdadelta!(var: resource, accum: resource, accum_update: resource, lr: T, rho: T,
    epsilon: T,
    grad: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32,
        uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ResourceApplyAdagrad!(var: resource, accum: resource, lr: T,
    grad: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32,
        uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false, update_slots: bool = true
ResourceApplyAdagradDA!(var: resource, gradient_accumulator: resource,
    gradient_squared_accumulator: resource, grad: T, lr: T, l1: T, l2: T,
    global_step: int64) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ResourceApplyAdamWithAmsgrad!(var: resource, m: resource, v: resource, vhat: resource,
    beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T,
    grad: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32,
        uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ResourceApplyAddSign!(var: resource, m: resource, lr: T, alpha: T, sign_decay: T, beta: T,
    grad: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32,
        uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ResourceApplyFtrl!(var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T,
    lr_power: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false, multiply_linear_by_lr: bool = false
ResourceApplyFtrlV2!(var: resource, accum: resource, linear: resource, grad: T, lr: T, l1: T, l2: T,
    l2_shrinkage: T,
    lr_power: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false, multiply_linear_by_lr: bool = false
ResourceApplyMomentum!(var: resource, accum: resource, lr: T, grad: T,
    momentum: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false, use_nesterov: bool = false
ResourceApplyPowerSign!(var: resource, m: resource, lr: T, logbase: T, sign_decay: T, beta: T,
    grad: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32,
        uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ResourceApplyProximalAdagrad!(var: resource, accum: resource, lr: T, l1: T, l2: T,
    grad: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32,
        uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ResourceApplyProximalGradientDescent!(var: resource, alpha: T, l1: T, l2: T,
    delta: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32,
        uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    use_locking: bool = false
ResourceCountUpTo!(resource: resource -> output: T) limit: int, T: {int32, int64}
ResourceGather!(resource: resource, indices: Tindices -> output: dtype) batch_dims: int = 0,
    validate_indices: bool = true, dtype: type, Tindices: {int32, int64}
ResourceGatherNd!(resource: resource, indices: Tindices -> output: dtype) dtype: type,
    Tindices: {int32, int64}
ResourceScatterAdd!(resource: resource, indices: Tindices,
    updates: dtype) dtype: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}
ResourceScatterDiv!(resource: resource, indices: Tindices,
    updates: dtype) dtype: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}
ResourceScatterMax!(resource: resource, indices: Tindices,
    updates: dtype) dtype: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}
ResourceScatterMin!(resource: resource, indices: Tindices,
    updates: dtype) dtype: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}
ResourceScatterMul!(resource: resource, indices: Tindices,
    updates: dtype) dtype: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}
ResourceScatterNdAdd!(ref: resource, indices: Tindices, updates: T) T: type,
    Tindices: {int32, int64}, use_locking: bool = true, bad_indices_policy: string = ''
ResourceScatterNdSub!(ref: resource, indices: Tindices, updates: T) T: type,
    Tindices: {int32, int64}, use_locking: bool = true, bad_indices_policy: string = ''
ResourceScatterNdUpdate!(ref: resource, indices: Tindices, updates: T) T: type,
    Tindices: {int32, int64}, use_locking: bool = true, bad_indices_policy: string = ''
ResourceScatterSub!(resource: resource, indices: Tindices,
    updates: dtype) dtype: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}
ResourceScatterUpdate!(resource: resource, indices: Tindices, updates: dtype) dtype: type,
    Tindices: {int32, int64}
ResourceSparseApplyAdadelta!(var: resource, accum: resource, accum_update: resource, lr: T, rho: T,
    epsilon: T, grad: T,
    indices: Tindices) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}, use_locking: bool = false
ResourceSparseApplyAdagrad!(var: resource, accum: resource, lr: T, grad: T,
    indices: Tindices) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}, use_locking: bool = false, update_slots: bool = true
ResourceSparseApplyAdagradV2!(var: resource, accum: resource, lr: T, epsilon: T, grad: T,
    indices: Tindices) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}, use_locking: bool = false, update_slots: bool = true
ResourceSparseApplyCenteredRMSProp!(var: resource, mg: resource, ms: resource, mom: resource, lr: T,
    rho: T, momentum: T, epsilon: T, grad: T,
    indices: Tindices) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}, use_locking: bool = false
ResourceSparseApplyFtrl!(var: resource, accum: resource, linear: resource, grad: T,
    indices: Tindices, lr: T, l1: T, l2: T,
    lr_power: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}, use_locking: bool = false, multiply_linear_by_lr: bool = false
ResourceSparseApplyFtrlV2!(var: resource, accum: resource, linear: resource, grad: T,
    indices: Tindices, lr: T, l1: T, l2: T, l2_shrinkage: T,
    lr_power: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}, use_locking: bool = false, multiply_linear_by_lr: bool = false
ResourceSparseApplyKerasMomentum!(var: resource, accum: resource, lr: T, grad: T, indices: Tindices,
    momentum: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}, use_locking: bool = false, use_nesterov: bool = false
ResourceSparseApplyMomentum!(var: resource, accum: resource, lr: T, grad: T, indices: Tindices,
    momentum: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}, use_locking: bool = false, use_nesterov: bool = false
ResourceSparseApplyRMSProp!(var: resource, ms: resource, mom: resource, lr: T, rho: T, momentum: T,
    epsilon: T, grad: T,
    indices: Tindices) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tindices: {int32, int64}, use_locking: bool = false
ResourceStridedSliceAssign!(ref: resource, begin: Index, end: Index, strides: Index,
    value: T) T: type, Index: {int32, int64}, begin_mask: int = 0, end_mask: int = 0,
    ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0
ScatterAdd(ref: Ref(T), indices: Tindices,
    updates: T -> output_ref: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    Tindices: {int32, int64}, use_locking: bool = false
ScatterDiv(ref: Ref(T), indices: Tindices,
    updates: T -> output_ref: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    Tindices: {int32, int64}, use_locking: bool = false
ScatterMul(ref: Ref(T), indices: Tindices,
    updates: T -> output_ref: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    Tindices: {int32, int64}, use_locking: bool = false
ScatterNdAdd(ref: Ref(T), indices: Tindices,
    updates: T -> output_ref: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    Tindices: {int32, int64}, use_locking: bool = false, bad_indices_policy: string = ''
ScatterNdSub(ref: Ref(T), indices: Tindices,
    updates: T -> output_ref: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    Tindices: {int32, int64}, use_locking: bool = false, bad_indices_policy: string = ''
ScatterNdUpdate(ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)) T: type,
    Tindices: {int32, int64}, use_locking: bool = true, bad_indices_policy: string = ''
ScatterSub(ref: Ref(T), indices: Tindices,
    updates: T -> output_ref: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    Tindices: {int32, int64}, use_locking: bool = false
ScatterUpdate(ref: Ref(T), indices: Tindices, updates: T -> output_ref: Ref(T)) T: type,
    Tindices: {int32, int64}, use_locking: bool = true
SparseApplyAdagrad(var: Ref(T), accum: Ref(T), lr: T, grad: T,
    indices: Tindices -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    Tindices: {int32, int64}, use_locking: bool = false, update_slots: bool = true
SparseApplyFtrl(var: Ref(T), accum: Ref(T), linear: Ref(T), grad: T, indices: Tindices, lr: T,
    l1: T, l2: T,
    lr_power: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    Tindices: {int32, int64}, use_locking: bool = false, multiply_linear_by_lr: bool = false
SparseApplyMomentum(var: Ref(T), accum: Ref(T), lr: T, grad: T, indices: Tindices,
    momentum: T -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    Tindices: {int32, int64}, use_locking: bool = false, use_nesterov: bool = false
SparseApplyRMSProp(var: Ref(T), ms: Ref(T), mom: Ref(T), lr: T, rho: T, momentum: T, epsilon: T,
    grad: T,
    indices: Tindices -> out: Ref(T)) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    Tindices: {int32, int64}, use_locking: bool = false
StridedSliceAssign(ref: Ref(T), begin: Index, end: Index, strides: Index,
    value: T -> output_ref: Ref(T)) T: type, Index: {int32, int64}, begin_mask: int = 0,
    end_mask: int = 0, ellipsis_mask: int = 0, new_axis_mask: int = 0, shrink_axis_mask: int = 0
TemporaryVariable!(-> ref: Ref(dtype)) shape: shape, dtype: type, var_name: string = ''
_VarHandlesOp!(-> resources: N*resource) containers: string, shared_names: string, N: int,
    dtypes: list(type), shapes: string
VarIsInitializedOp!(resource: resource -> is_initialized: bool)
Variable!(-> ref: Ref(dtype)) shape: shape, dtype: type, container: string = '',
    shared_name: string = ''
VariableShape!(input: resource -> output: out_type) out_type: {int32, int64} = int32
VariableV2!(-> ref: Ref(dtype)) shape: shape, dtype: type, container: string = '',
    shared_name: string = ''
)";

}  // namespace halfstep::graph::ops

// Arithmetic, activations and reductions; syntax: imported_ops.h.

#include "graph/ops/imported_ops.h"

namespace halfstep::graph::ops {

const std::string_view k_imported_math = R"(
Acos(x: T -> y: T) T: {half, bfloat16, float, double, complex64, complex128}
Acosh(x: T -> y: T) T: {half, bfloat16, float, double, complex64, complex128}
Angle(input: T -> output: Tout) T: {complex64, complex128} = complex64,
    Tout: {float, double} = float
ApproximateEqual(x: T,
    y: T -> z: bool) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    tolerance: float = 1e-05
Asin(x: T -> y: T) T: {half, bfloat16, float, double, complex64, complex128}
Asinh(x: T -> y: T) T: {half, bfloat16, float, double, complex64, complex128}
Atan(x: T -> y: T) T: {half, bfloat16, float, double, complex64, complex128}
Atan2(y: T, x: T -> z: T) T: floattype
Atanh(x: T -> y: T) T: {half, bfloat16, float, double, complex64, complex128}
BesselI0e(x: T -> y: T) T: floattype
BesselI1e(x: T -> y: T) T: floattype
Betainc(a: T, b: T, x: T -> z: T) T: {float, double}
Bincount(arr: int32, size: int32, weights: T -> bins: T) T: {float, double, int32, int64}
Bitcast(input: T -> output: type) T: {half, bfloat16, float, double, int8, int16, int32, int64,
        uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16, quint16,
        qint32},
    type: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
        complex64, complex128, qint8, quint8, qint16, quint16, qint32}
BitwiseAnd(x: T, y: T -> z: T) T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}
BitwiseOr(x: T, y: T -> z: T) T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}
BitwiseXor(x: T, y: T -> z: T) T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}
Bucketize(input: T -> output: int32) T: {float, double, int32, int64}, boundaries: list(float)
CheckNumerics!(tensor: T -> output: T) T: floattype, message: string
CheckNumericsV2!(tensor: T -> output: T) T: floattype, message: string
Complex(real: T, imag: T -> out: Tout) T: {float, double} = float,
    Tout: {complex64, complex128} = complex64
ComplexAbs(x: T -> y: Tout) T: {complex64, complex128} = complex64, Tout: {float, double} = float
Conj(input: T -> output: T) T: {complex64, complex128, variant} = complex64
Cos(x: T -> y: T) T: {half, bfloat16, float, double, complex64, complex128}
Cosh(x: T -> y: T) T: {half, bfloat16, float, double, complex64, complex128}
Cumprod(x: T, axis: Tidx -> out: T) exclusive: bool = false, reverse: bool = false,
    T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
        complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tidx: {int32, int64} = int32
Cumsum(x: T, axis: Tidx -> out: T) exclusive: bool = false, reverse: bool = false,
    T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
        complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tidx: {int32, int64} = int32
CumulativeLogsumexp(x: T, axis: Tidx -> out: T) exclusive: bool = false, reverse: bool = false,
    T: floattype, Tidx: {int32, int64} = int32
DenseBincount(input: Tidx, size: Tidx, weights: T -> output: T) Tidx: {int32, int64},
    T: {float, double, int32, int64}, binary_output: bool = false
Dequantize(input: T, min_range: float,
    max_range: float -> output: dtype) T: {qint8, quint8, qint16, quint16, qint32},
    mode: string = 'MIN_COMBINED', narrow_range: bool = false, axis: int = -1,
    dtype: {bfloat16, float} = float
Digamma(x: T -> y: T) T: floattype
Div(x: T,
    y: T -> z: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128}
EuclideanNorm(input: T, reduction_indices: Tidx -> output: T) keep_dims: bool = false,
    T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
        complex64, complex128, qint8, quint8, qint16, quint16, qint32},
    Tidx: {int32, int64} = int32
FakeQuantWithMinMaxArgs(inputs: float -> outputs: float) min: float = -6, max: float = 6,
    num_bits: int = 8, narrow_range: bool = false
FakeQuantWithMinMaxArgsGradient(gradients: float,
    inputs: float -> backprops: float) min: float = -6, max: float = 6, num_bits: int = 8,
    narrow_range: bool = false
FakeQuantWithMinMaxVars(inputs: float, min: float, max: float -> outputs: float) num_bits: int = 8,
    narrow_range: bool = false
FakeQuantWithMinMaxVarsGradient(gradients: float, inputs: float, min: float,
    max: float -> backprops_wrt_input: float, backprop_wrt_min: float,
    backprop_wrt_max: float) num_bits: int = 8, narrow_range: bool = false
FakeQuantWithMinMaxVarsPerChannel(inputs: float, min: float,
    max: float -> outputs: float) num_bits: int = 8, narrow_range: bool = false
FakeQuantWithMinMaxVarsPerChannelGradient(gradients: float, inputs: float, min: float,
    max: float -> backprops_wrt_input: float, backprop_wrt_min: float,
    backprop_wrt_max: float) num_bits: int = 8, narrow_range: bool = false
FloorMod(x: T, y: T -> z: T) T: realnumbertype
HistogramFixedWidth(values: T, value_range: T,
    nbins: int32 -> out: dtype) T: {float, double, int32, int64}, dtype: {int32, int64} = int32
Igamma(a: T, x: T -> z: T) T: floattype
Igammac(a: T, x: T -> z: T) T: floattype
Imag(input: T -> output: Tout) T: {complex64, complex128} = complex64, Tout: {float, double} = float
InTopK(predictions: float, targets: T -> precision: bool) k: int, T: {int32, int64} = int32
Inv(x: T -> y: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, complex64,
        complex128}
InvGrad(y: T, dy: T -> z: T) T: {half, bfloat16, float, double, complex64, complex128}
Invert(x: T -> y: T) T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}
LeftShift(x: T, y: T -> z: T) T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}
Lgamma(x: T -> y: T) T: floattype
Mod(x: T, y: T -> z: T) T: {half, bfloat16, float, double, int32, int64}
MulNoNan(x: T, y: T -> z: T) T: {half, bfloat16, float, double, complex64, complex128}
Ndtri(x: T -> y: T) T: floattype
NextAfter(x1: T, x2: T -> output: T) T: {float, double} = float
NthElement(input: T, n: int32 -> values: T) reverse: bool = false, T: realnumbertype
Polygamma(a: T, x: T -> z: T) T: {float, double}
QuantizeAndDequantizeV2(input: T, input_min: T,
    input_max: T -> output: T) signed_input: bool = true, num_bits: int = 8,
    range_given: bool = false, T: floattype, round_mode: string = 'HALF_TO_EVEN',
    narrow_range: bool = false, axis: int = -1
QuantizeAndDequantizeV3(input: T, input_min: T, input_max: T,
    num_bits: int32 -> output: T) signed_input: bool = true, range_given: bool = true, T: floattype,
    narrow_range: bool = false, axis: int = -1
QuantizeAndDequantizeV4(input: T, input_min: T,
    input_max: T -> output: T) signed_input: bool = true, num_bits: int = 8,
    range_given: bool = false, T: floattype, round_mode: string = 'HALF_TO_EVEN',
    narrow_range: bool = false, axis: int = -1
QuantizeV2(input: float, min_range: float, max_range: float -> output: T, output_min: float,
    output_max: float) T: {qint8, quint8, qint16, quint16, qint32}, mode: string = 'MIN_COMBINED',
    round_mode: string = 'HALF_AWAY_FROM_ZERO', narrow_range: bool = false, axis: int = -1,
    ensure_minimum_range: float = 0.01
Real(input: T -> output: Tout) T: {complex64, complex128} = complex64, Tout: {float, double} = float
RightShift(x: T, y: T -> z: T) T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}
Rint(x: T -> y: T) T: floattype
SegmentMax(data: T, segment_ids: Tindices -> output: T) T: realnumbertype, Tindices: {int32, int64}
SegmentMean(data: T,
    segment_ids: Tindices -> output: T) T: {half, bfloat16, float, double, int8, int16, int32,
        int64, uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16,
        quint16, qint32},
    Tindices: {int32, int64}
SegmentMin(data: T, segment_ids: Tindices -> output: T) T: realnumbertype, Tindices: {int32, int64}
SegmentProd(data: T,
    segment_ids: Tindices -> output: T) T: {half, bfloat16, float, double, int8, int16, int32,
        int64, uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16,
        quint16, qint32},
    Tindices: {int32, int64}
SegmentSum(data: T,
    segment_ids: Tindices -> output: T) T: {half, bfloat16, float, double, int8, int16, int32,
        int64, uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16,
        quint16, qint32},
    Tindices: {int32, int64}
Sin(x: T -> y: T) T: {half, bfloat16, float, double, complex64, complex128}
Sinh(x: T -> y: T) T: {half, bfloat16, float, double, complex64, complex128}
SparseSegmentMean(data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T) T: floattype,
    Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32, sparse_gradient: bool = false
SparseSegmentMeanGrad(grad: T, indices: Tidx, segment_ids: Tsegmentids,
    output_dim0: int32 -> output: T) T: floattype, Tidx: {int32, int64} = int32,
    Tsegmentids: {int32, int64} = int32
SparseSegmentSqrtN(data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T) T: floattype,
    Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32, sparse_gradient: bool = false
SparseSegmentSqrtNGrad(grad: T, indices: Tidx, segment_ids: Tsegmentids,
    output_dim0: int32 -> output: T) T: floattype, Tidx: {int32, int64} = int32,
    Tsegmentids: {int32, int64} = int32
SparseSegmentSum(data: T, indices: Tidx, segment_ids: Tsegmentids -> output: T) T: realnumbertype,
    Tidx: {int32, int64} = int32, Tsegmentids: {int32, int64} = int32, sparse_gradient: bool = false
SparseSegmentSumGrad(grad: T, indices: Tidx, segment_ids: Tsegmentids,
    output_dim0: int32 -> output: T) T: floattype, Tidx: {int32, int64} = int32,
    Tsegmentids: {int32, int64} = int32
Tan(x: T -> y: T) T: {half, bfloat16, float, double, complex64, complex128}
TruncateDiv(x: T,
    y: T -> z: T) T: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, uint16,
        uint32, uint64, complex64, complex128}
TruncateMod(x: T, y: T -> z: T) T: {half, bfloat16, float, double, int32, int64}
UnsortedSegmentMax(data: T, segment_ids: Tindices,
    num_segments: Tnumsegments -> output: T) T: realnumbertype, Tindices: {int32, int64},
    Tnumsegments: {int32, int64} = int32
UnsortedSegmentMin(data: T, segment_ids: Tindices,
    num_segments: Tnumsegments -> output: T) T: realnumbertype, Tindices: {int32, int64},
    Tnumsegments: {int32, int64} = int32
UnsortedSegmentProd(data: T, segment_ids: Tindices,
    num_segments: Tnumsegments -> output: T) T: {half, bfloat16, float, double, int8, int16, int32,
        int64, uint8, uint16, uint32, uint64, complex64, complex128, qint8, quint8, qint16,
        quint16, qint32},
    Tindices: {int32, int64}, Tnumsegments: {int32, int64} = int32
Xdivy(x: T, y: T -> z: T) T: {half, bfloat16, float, double, complex64, complex128}
Xlog1py(x: T, y: T -> z: T) T: {half, bfloat16, float, double, complex64, complex128}
Xlogy(x: T, y: T -> z: T) T: {half, bfloat16, float, double, complex64, complex128}
Zeta(x: T, q: T -> z: T) T: {float, double}
)";

}  // namespace halfstep::graph::ops

// Matrices, transforms and random numbers; syntax: imported_ops.h.

#include "graph/ops/imported_ops.h"

namespace halfstep::graph::ops {

const std::string_view k_imported_linalg = R"(
BatchMatMul(x: T,
    y: T -> output: T) T: {half, bfloat16, float, double, int32, int64, complex64, complex128},
    adj_x: bool = false, adj_y: bool = false, grad_x: bool = false, grad_y: bool = false
BatchMatMulV3(x: Ta,
    y: Tb -> output: Tout) Ta: {half, bfloat16, float, double, int8, int16, int32, int64, uint8,
        complex64, complex128},
    Tb: {half, bfloat16, float, double, int8, int16, int32, int64, uint8, complex64, complex128},
    Tout: {half, bfloat16, float, double, int16, int32, int64, complex64, complex128},
    adj_x: bool = false, adj_y: bool = false, grad_x: bool = false, grad_y: bool = false
Cholesky(input: T -> output: T) T: {half, float, double, complex64, complex128}
CholeskyGrad(l: T, grad: T -> output: T) T: {half, float, double}
ComputeAccidentalHits(true_classes: int64, sampled_candidates: int64 -> indices: int32, ids: int64,
    weights: float) num_true: int, seed: int = 0, seed2: int = 0
Cross(a: T, b: T -> product: T) T: realnumbertype
Diag(diagonal: T -> output: T) T: {half, bfloat16, float, double, int32, int64, complex64,
        complex128}
DiagPart(input: T -> diagonal: T) T: {half, bfloat16, float, double, int32, int64, complex64,
        complex128}
Einsum(inputs: N*T -> output: T) equation: string, N: int, T: type
FFT(input: Tcomplex -> output: Tcomplex) Tcomplex: {complex64, complex128} = complex64
FFT2D(input: Tcomplex -> output: Tcomplex) Tcomplex: {complex64, complex128} = complex64
FixedUnigramCandidateSampler!(true_classes: int64 -> sampled_candidates: int64,
    true_expected_count: float, sampled_expected_count: float) num_true: int, num_sampled: int,
    unique: bool, range_max: int, vocab_file: string = '', distortion: float = 1,
    num_reserved_ids: int = 0, num_shards: int = 1, shard: int = 0, unigrams: list(float) = [],
    seed: int = 0, seed2: int = 0
IFFT(input: Tcomplex -> output: Tcomplex) Tcomplex: {complex64, complex128} = complex64
IFFT2D(input: Tcomplex -> output: Tcomplex) Tcomplex: {complex64, complex128} = complex64
IRFFT(input: Tcomplex, fft_length: int32 -> output: Treal) Treal: {float, double} = float,
    Tcomplex: {complex64, complex128} = complex64
LearnedUnigramCandidateSampler!(true_classes: int64 -> sampled_candidates: int64,
    true_expected_count: float, sampled_expected_count: float) num_true: int, num_sampled: int,
    unique: bool, range_max: int, seed: int = 0, seed2: int = 0
LogMatrixDeterminant(input: T -> sign: T,
    log_abs_determinant: T) T: {half, float, double, complex64, complex128}
LogUniformCandidateSampler!(true_classes: int64 -> sampled_candidates: int64,
    true_expected_count: float, sampled_expected_count: float) num_true: int, num_sampled: int,
    unique: bool, range_max: int, seed: int = 0, seed2: int = 0
MatrixBandPart(input: T, num_lower: Tindex, num_upper: Tindex -> band: T) T: type,
    Tindex: {int32, int64} = int64
MatrixDeterminant(input: T -> output: T) T: {half, float, double, complex64, complex128}
MatrixDiag(diagonal: T -> output: T) T: type
MatrixDiagPart(input: T -> diagonal: T) T: type
MatrixDiagPartV2(input: T, k: int32, padding_value: T -> diagonal: T) T: type
MatrixDiagPartV3(input: T, k: int32, padding_value: T -> diagonal: T) T: type,
    align: string = 'RIGHT_LEFT'
MatrixDiagV2(diagonal: T, k: int32, num_rows: int32, num_cols: int32,
    padding_value: T -> output: T) T: type
MatrixDiagV3(diagonal: T, k: int32, num_rows: int32, num_cols: int32,
    padding_value: T -> output: T) T: type, align: string = 'RIGHT_LEFT'
MatrixInverse(input: T -> output: T) adjoint: bool = false,
    T: {half, float, double, complex64, complex128}
MatrixSetDiag(input: T, diagonal: T -> output: T) T: type
MatrixSetDiagV2(input: T, diagonal: T, k: int32 -> output: T) T: type
MatrixSetDiagV3(input: T, diagonal: T, k: int32 -> output: T) T: type, align: string = 'RIGHT_LEFT'
MatrixSolve(matrix: T, rhs: T -> output: T) adjoint: bool = false,
    T: {half, float, double, complex64, complex128}
MatrixTriangularSolve(matrix: T, rhs: T -> output: T) lower: bool = true, adjoint: bool = false,
    T: {half, bfloat16, float, double, complex64, complex128}
Multinomial!(logits: T, num_samples: int32 -> output: output_dtype) seed: int = 0, seed2: int = 0,
    T: realnumbertype, output_dtype: {int32, int64} = int64
ParameterizedTruncatedNormal!(shape: T, means: dtype, stdevs: dtype, minvals: dtype,
    maxvals: dtype -> output: dtype) seed: int = 0, seed2: int = 0, dtype: floattype,
    T: {int32, int64}
Qr(input: T -> q: T, r: T) full_matrices: bool = false,
    T: {half, float, double, complex64, complex128}
RFFT(input: Treal, fft_length: int32 -> output: Tcomplex) Treal: {float, double} = float,
    Tcomplex: {complex64, complex128} = complex64
RandomGamma!(shape: S, alpha: T -> output: T) seed: int = 0, seed2: int = 0, S: {int32, int64},
    T: {half, float, double}
RandomGammaGrad(alpha: T, sample: T -> output: T) T: {float, double}
RandomPoissonV2!(shape: S, rate: R -> output: dtype) seed: int = 0, seed2: int = 0,
    S: {int32, int64}, R: {half, float, double, int32, int64} = double,
    dtype: {half, float, double, int32, int64} = int64
RandomShuffle!(value: T -> output: T) seed: int = 0, seed2: int = 0, T: type
RandomStandardNormal!(shape: T -> output: dtype) seed: int = 0, seed2: int = 0, dtype: floattype,
    T: {int32, int64}
RandomUniform!(shape: T -> output: dtype) seed: int = 0, seed2: int = 0, dtype: floattype,
    T: {int32, int64}
RandomUniformInt!(shape: T, minval: Tout, maxval: Tout -> output: Tout) seed: int = 0,
    seed2: int = 0, Tout: {int32, int64}, T: {int32, int64}
RngReadAndSkip!(resource: resource, alg: int32, delta: uint64 -> value: int64)
RngSkip!(resource: resource, algorithm: int64, delta: int64)
SelfAdjointEigV2(input: T -> e: T, v: T) compute_v: bool = true,
    T: {half, float, double, complex64, complex128}
SparseMatMul(a: Ta, b: Tb -> product: float) transpose_a: bool = false, transpose_b: bool = false,
    a_is_sparse: bool = false, b_is_sparse: bool = false, Ta: {bfloat16, float} = float,
    Tb: {bfloat16, float} = float
SparseTensorDenseMatMul(a_indices: Tindices, a_values: T, a_shape: int64,
    b: T -> product: T) T: type, Tindices: {int32, int64} = int64, adjoint_a: bool = false,
    adjoint_b: bool = false
StatefulStandardNormalV2!(resource: resource, algorithm: int64,
    shape: shape_dtype -> output: dtype) dtype: type = float, shape_dtype: type = int64
StatefulTruncatedNormal!(resource: resource, algorithm: int64,
    shape: shape_dtype -> output: dtype) dtype: type = float, shape_dtype: type = int64
StatefulUniform!(resource: resource, algorithm: int64,
    shape: shape_dtype -> output: dtype) dtype: type = float, shape_dtype: type = int64
StatefulUniformInt!(resource: resource, algorithm: int64, shape: shape_dtype, minval: dtype,
    maxval: dtype -> output: dtype) dtype: type = int64, shape_dtype: type = int64
StatelessMultinomial(logits: T, num_samples: int32,
    seed: Tseed -> output: output_dtype) T: realnumbertype, Tseed: {int32, int64} = int64,
    output_dtype: {int32, int64} = int64
StatelessRandomGetAlg!(-> alg: int32)
StatelessRandomGetKeyCounter(seed: Tseed -> key: uint64,
    counter: uint64) Tseed: {int32, int64} = int64
StatelessRandomGetKeyCounterAlg(seed: Tseed -> key: uint64, counter: uint64,
    alg: int32) Tseed: {int32, int64} = int64
StatelessRandomNormal(shape: T, seed: Tseed -> output: dtype) dtype: floattype = float,
    T: {int32, int64} = int32, Tseed: {int32, int64} = int64
StatelessRandomNormalV2(shape: Tshape, key: uint64, counter: uint64,
    alg: int32 -> output: dtype) dtype: floattype = float, Tshape: {int32, int64} = int32
StatelessRandomUniform(shape: T, seed: Tseed -> output: dtype) dtype: floattype = float,
    T: {int32, int64} = int32, Tseed: {int32, int64} = int64
StatelessRandomUniformFullInt(shape: T,
    seed: Tseed -> output: dtype) dtype: {int32, int64, uint32, uint64} = uint64,
    T: {int32, int64} = int32, Tseed: {int32, int64, uint32, uint64} = int64
StatelessRandomUniformFullIntV2(shape: Tshape, key: uint64, counter: uint64,
    alg: int32 -> output: dtype) dtype: {int32, int64, uint32, uint64} = uint64,
    Tshape: {int32, int64} = int32
StatelessRandomUniformInt(shape: T, seed: Tseed, minval: dtype,
    maxval: dtype -> output: dtype) dtype: {int32, int64}, T: {int32, int64},
    Tseed: {int32, int64} = int64
StatelessRandomUniformIntV2(shape: Tshape, key: uint64, counter: uint64, alg: int32, minval: dtype,
    maxval: dtype -> output: dtype) dtype: {int32, int64, uint32, uint64},
    Tshape: {int32, int64} = int32
StatelessRandomUniformV2(shape: Tshape, key: uint64, counter: uint64,
    alg: int32 -> output: dtype) dtype: floattype = float, Tshape: {int32, int64} = int32
StatelessShuffle(value: T, key: uint64, counter: uint64, alg: int32 -> output: T) T: type
StatelessTruncatedNormal(shape: T, seed: Tseed -> output: dtype) dtype: floattype = float,
    T: {int32, int64} = int32, Tseed: {int32, int64} = int64
StatelessTruncatedNormalV2(shape: Tshape, key: uint64, counter: uint64,
    alg: int32 -> output: dtype) dtype: floattype = float, Tshape: {int32, int64} = int32
Svd(input: T -> s: T, u: T, v: T) compute_uv: bool = true, full_matrices: bool = false,
    T: {half, float, double, complex64, complex128}
TruncatedNormal!(shape: T -> output: dtype) seed: int = 0, seed2: int = 0, dtype: floattype,
    T: {int32, int64}
UniformCandidateSampler!(true_classes: int64 -> sampled_candidates: int64,
    true_expected_count: float, sampled_expected_count: float) num_true: int, num_sampled: int,
    unique: bool, range_max: int, seed: int = 0, seed2: int = 0
)";

}  // namespace halfstep::graph::ops

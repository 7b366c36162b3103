#pragma once
// IDX, the format of MNIST and its relatives, plain or gzip-compressed. Layout: two zero bytes, an
// element type, the rank, big-endian 32-bit extents, the elements in row-major order, big-endian.

#include <string>

#include "core/tensor.h"

namespace halfstep::data {

/// The tensor of an IDX file. Compression is detected by content; a file whose name ends in ".gz"
/// must be compressed. Dtypes: uint8, float32, float64 as stored; int8, int16 and int32 become
/// int32. Errors: UserError(data) for anything that is not exactly one IDX tensor. Memory is
/// allocated only for sizes that the file can hold.
Tensor read_idx(const std::string& path);

/// Writes uint8, int32, float32 or float64; compressed when the name ends in ".gz".
/// Errors: UserError(data) when the file cannot be written; InternalError for another dtype.
void write_idx(const std::string& path, const TensorView& tensor);

}  // namespace halfstep::data

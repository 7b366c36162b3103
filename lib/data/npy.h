#pragma once
// NumPy's array format, versions 1 to 3.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace halfstep::data {

/// The array in the bytes of a .npy file, in C order and native byte order. `what` is named in
/// errors. Dtypes: u1, i4, i8, f2, f4, f8 and b1 as stored; i1, i2 and u2 become int32, u4 and u8
/// become int64. Errors: UserError(data) for damaged bytes, and for arrays of strings, objects and
/// the like.
Tensor read_npy(std::span<const std::byte> bytes, const std::string& what);

/// The header that precedes the elements; its size is a multiple of 64 bytes.
/// Errors: InternalError for a dtype NumPy does not have, such as bfloat16.
std::vector<std::byte> npy_header(DType dtype, const Shape& shape);

}  // namespace halfstep::data

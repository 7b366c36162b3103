#pragma once
// Files of tensors: IDX, NumPy's NPY and NPZ, safetensors.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "data/file.h"
#include "data/zip.h"

namespace halfstep::data {

// IDX, the format of MNIST and its relatives, plain or gzip-compressed. Layout: two zero bytes, an
// element type, the rank, big-endian 32-bit extents, the elements in row-major order, big-endian.

/// The tensor of an IDX file. Compression is detected by content; a file whose name ends in ".gz"
/// must be compressed. Dtypes: uint8, float32, float64 as stored; int8, int16 and int32 become
/// int32. Errors: UserError(data) for anything that is not exactly one IDX tensor. Memory is
/// allocated only for sizes that the file can hold.
Tensor read_idx(const std::string& path);

/// Writes uint8, int32, float32 or float64; compressed when the name ends in ".gz".
/// Errors: UserError(data) when the file cannot be written; InternalError for another dtype.
void write_idx(const std::string& path, const TensorView& tensor);

// NumPy's array format, versions 1 to 3.

/// The array in the bytes of a .npy file, in C order and native byte order. `what` is named in
/// errors. Dtypes: u1, i4, i8, f2, f4, f8 and b1 as stored; i1, i2 and u2 become int32, u4 and u8
/// become int64. Errors: UserError(data) for damaged bytes, and for arrays of strings, objects and
/// the like.
Tensor read_npy(std::span<const std::byte> bytes, const std::string& what);

/// The header that precedes the elements; its size is a multiple of 64 bytes.
/// Errors: InternalError for a dtype NumPy does not have, such as bfloat16.
std::vector<std::byte> npy_header(DType dtype, const Shape& shape);

/// A tensor to be written under a name.
struct NamedTensor {
  std::string name;
  TensorView view;
};

/// NumPy's archives of named arrays, as written by np.savez and np.savez_compressed.
class NpzReader {
 public:
  /// Errors: UserError(data) when the file is no NPZ archive.
  explicit NpzReader(const std::string& path);

  const std::string& path() const { return zip_.path(); }
  /// Names of the arrays, without ".npy", in the order of the file.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// Dtypes: see read_npy. Errors: UserError(data) for an array that is damaged or not there.
  Tensor read(std::string_view name) const;

 private:
  const ZipEntry* find(std::string_view name) const;

  ZipReader zip_;
};

/// Writes arrays as np.savez does. Errors: UserError(data) when the file cannot be written;
/// InternalError for dtypes NumPy does not have and for a name given twice.
void write_npz(const std::string& path, std::span<const NamedTensor> arrays);

// safetensors: eight bytes of header length, a JSON header, the elements without gaps.
// Source: https://github.com/huggingface/safetensors, "Format".

/// Name, type and location of one tensor in the file.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::float32;
  Shape shape;
  std::uint64_t begin = 0;  ///< of its bytes, counted from the end of the header
  std::uint64_t end = 0;
};

/// A checked file whose tensors are read on demand.
/// Dtypes: F16, BF16, F32, F64, I32, I64, U8, BOOL.
class SafetensorsReader {
 public:
  /// Errors: UserError(data) for a file that is truncated or longer than its header says; for a
  /// header that is not valid JSON of the required form, is above 100 MB or has a duplicate name;
  /// for tensors that overlap, leave gaps or do not have the bytes of their shape.
  explicit SafetensorsReader(const std::string& path);

  const std::string& path() const { return file_.path(); }
  /// All tensors, in the order of their data.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// nullptr when there is no tensor of that name.
  const SafetensorsEntry* find(std::string_view name) const;

  /// Errors: UserError(data) when the file cannot be read.
  Tensor read(const SafetensorsEntry& entry) const;
  /// Reads into `to`. Errors: InternalError when dtype or size differ.
  void read(const SafetensorsEntry& entry, const TensorView& to) const;

 private:
  InputFile file_;
  std::uint64_t data_offset_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

/// Writes the file atomically. Tensors with wide elements come first, so that each is aligned to
/// its element size; otherwise their order is kept. Errors: UserError(data) when it cannot be
/// written; InternalError for other dtypes and for a duplicate name.
void write_safetensors(const std::string& path,
                       std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace halfstep::data

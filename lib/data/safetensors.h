#pragma once
// safetensors: eight bytes of header length, a JSON header, the elements without gaps.
// Source: https://github.com/huggingface/safetensors, "Format".

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "data/file.h"
#include "data/named_tensor.h"

namespace halfstep::data {

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
  /// In the order of their data.
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

#pragma once
// NumPy's archives of named arrays, as written by np.savez and np.savez_compressed.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "data/named_tensor.h"
#include "data/zip.h"

namespace halfstep::data {

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

}  // namespace halfstep::data

#include <set>

#include "core/ranges.h"
#include "data/tensor_files.h"

namespace halfstep::data {
namespace {

constexpr std::string_view k_extension = ".npy";

}  // namespace

NpzReader::NpzReader(const std::string& path) : zip_(path) {
  if (names().empty()) throw file_error(path, "has no arrays");
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> names;
  for (const ZipEntry& entry : zip_.entries()) {
    const std::string_view name = entry.name;
    if (name.ends_with(k_extension)) {
      names.emplace_back(name.substr(0, name.size() - k_extension.size()));
    }
  }
  return names;
}

const ZipEntry* NpzReader::find(std::string_view name) const {
  return find_or_null(zip_.entries(), fmt::format("{}{}", name, k_extension), &ZipEntry::name);
}

Tensor NpzReader::read(std::string_view name) const {
  const ZipEntry* entry = find(name);
  if (entry == nullptr) {
    throw UserError(ErrorKind::data,
                    in_file(path()),
                    fmt::format("has no array '{}'", name),
                    did_you_mean(name, names()));
  }
  return read_npy(zip_.read(*entry), fmt::format("{}: array '{}'", path(), name));
}

void write_npz(const std::string& path, std::span<const NamedTensor> arrays) {
  ZipWriter zip(path);
  std::set<std::string_view> names;
  for (const NamedTensor& array : arrays) {
    require(names.insert(array.name).second, "array '{}' twice", array.name);
    const std::vector<std::byte> header = npy_header(array.view.dtype, array.view.shape);
    zip.add(array.name + std::string(k_extension),
            {header, {array.view.as<const std::byte>(), array.view.bytes()}});
  }
  zip.commit();
}

}  // namespace halfstep::data

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/files.h"
#include "core/ranges.h"
#include "data/safetensors_dtype.h"
#include "data/tensor_files.h"

namespace halfstep::data {
namespace {

std::string_view type_name(DType dtype) {
  const auto* type = find_or_null(k_safetensors_types, dtype, &SafetensorsType::dtype);
  require(type != nullptr, "{} in a safetensors file", name(dtype));
  return type->name;
}

}  // namespace

void write_safetensors(const std::string& path,
                       std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<const NamedTensor*> order;
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    require(names.insert(tensor.name).second && tensor.name != k_safetensors_metadata,
            "tensor name '{}' in a safetensors file",
            tensor.name);
    order.push_back(&tensor);
  }
  std::ranges::sort(order, [](const NamedTensor* a, const NamedTensor* b) {
    const std::size_t a_bytes = size_bytes(a->view.dtype);
    const std::size_t b_bytes = size_bytes(b->view.dtype);
    return a_bytes != b_bytes ? a_bytes > b_bytes : a < b;
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[std::string(k_safetensors_metadata)] = metadata;
  std::uint64_t at = 0;
  for (const NamedTensor* tensor : order) {
    const std::uint64_t end = at + tensor->view.bytes();
    const auto dims = tensor->view.shape.dims();
    header[tensor->name] = {{"dtype", type_name(tensor->view.dtype)},
                            {"shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
                            {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();

  OutputFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(text);
  for (const NamedTensor* tensor : order) {
    file.write({tensor->view.as<const std::byte>(), tensor->view.bytes()});
  }
  file.commit();
}

}  // namespace halfstep::data

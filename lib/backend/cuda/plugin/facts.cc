#include "backend/cuda/plugin/facts.h"

#include <span>

#include "core/error.h"

namespace halfstep::backend::cuda::plugin {
namespace {

using boundary::AttrKind;

std::span<const std::int64_t> integers_of(const boundary::Attr& attr) {
  return {attr.integers, static_cast<std::size_t>(attr.count)};
}

graph::AttrValue value_of(const boundary::Attr& attr) {
  const auto count = static_cast<std::size_t>(attr.count);
  switch (attr.kind) {
    case AttrKind::boolean:
      return attr.integers[0] != 0;
    case AttrKind::integer:
      return attr.integers[0];
    case AttrKind::real:
      return attr.reals[0];
    case AttrKind::text:
      return std::string(attr.text, count);
    case AttrKind::dtype:
      return static_cast<DType>(attr.integers[0]);
    case AttrKind::shape:
      return Shape(integers_of(attr));
    case AttrKind::integers:
      return std::vector<std::int64_t>(attr.integers, attr.integers + count);
    case AttrKind::reals:
      return std::vector<double>(attr.reals, attr.reals + count);
    case AttrKind::dtypes:
      break;
  }
  std::vector<DType> dtypes;
  for (const std::int64_t number : integers_of(attr)) dtypes.push_back(static_cast<DType>(number));
  return dtypes;
}

graph::TensorType type_of(const boundary::Type& type) {
  const std::span<const std::int64_t> dims(type.dims, static_cast<std::size_t>(type.rank));
  return {static_cast<DType>(type.dtype), Shape(dims)};
}

}  // namespace

Facts::Facts(const boundary::Node& node) : op(node.op), name(node.name) {
  for (std::int32_t i = 0; i < node.inputs; ++i) {
    inputs.push_back(type_of(node.input_types[i]));
    const boundary::Integers& known = node.constants[i];
    constants.emplace_back();
    if (known.values != nullptr) constants.back().emplace(known.values, known.values + known.count);
  }
  for (std::int32_t i = 0; i < node.outputs; ++i) outputs.push_back(type_of(node.output_types[i]));
  for (std::int32_t i = 0; i < node.attrs; ++i) {
    attrs.set(node.attr_list[i].name, value_of(node.attr_list[i]));
  }
}

const std::vector<std::int64_t>& Facts::constant(std::size_t i) const {
  require(constants.at(i).has_value(), "input {} of {} is no constant", i, name);
  return *constants[i];
}

}  // namespace halfstep::backend::cuda::plugin

#include "backend/cuda/node_description.h"

#include <algorithm>
#include <type_traits>

#include "graph/ops/fused_update.h"

namespace halfstep::backend::cuda {
namespace {

using boundary::AttrKind;

boundary::Type plain(const graph::TensorType& type) {
  boundary::Type result{};
  result.dtype = static_cast<std::int32_t>(type.dtype);
  result.rank = static_cast<std::int32_t>(type.shape.rank());
  std::copy(type.shape.begin(), type.shape.end(), result.dims);
  return result;
}

std::int64_t number(DType dtype) { return static_cast<std::int64_t>(dtype); }

/// The value of an attribute by its stored type.
struct Flat {
  AttrKind kind = AttrKind::text;
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
};

struct Flatten {
  Flat operator()(bool value) const { return {AttrKind::boolean, {value ? 1 : 0}, {}}; }
  Flat operator()(std::int64_t value) const { return {AttrKind::integer, {value}, {}}; }
  Flat operator()(double value) const { return {AttrKind::real, {}, {value}}; }
  Flat operator()(const std::string&) const { return {AttrKind::text, {}, {}}; }
  Flat operator()(DType value) const { return {AttrKind::dtype, {number(value)}, {}}; }
  Flat operator()(const Shape& value) const {
    return {AttrKind::shape, {value.begin(), value.end()}, {}};
  }
  Flat operator()(const std::vector<std::int64_t>& value) const {
    return {AttrKind::integers, value, {}};
  }
  Flat operator()(const std::vector<double>& value) const { return {AttrKind::reals, {}, value}; }
  Flat operator()(const std::vector<DType>& value) const {
    Flat flat{AttrKind::dtypes, {}, {}};
    for (DType dtype : value) flat.integers.push_back(number(dtype));
    return flat;
  }
};

}  // namespace

NodeDescription::NodeDescription(const NodeView& node) {
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    const graph::TensorType& type = node.input(i);
    const bool handle = type.dtype == DType::resource;
    inputs_.push_back(plain(
        handle ? graph::TensorType{type.dtype, graph::ops::variable_type(node.producer(i)).shape}
               : type));
    constant_values_.push_back({});
    const bool integer = type.dtype == DType::int32 || type.dtype == DType::int64;
    const auto constant = integer ? node.constant(i) : std::nullopt;
    if (constant) constant_values_.back() = *constant;
    constants_.push_back({constant ? static_cast<std::int64_t>(constant->size()) : 0, nullptr});
    // An empty constant has a non-null address, which distinguishes it from a missing one.
    static constexpr std::int64_t k_nothing = 0;
    if (constant) {
      constants_.back().values = constant->empty() ? &k_nothing : constant_values_.back().data();
    }
  }
  for (std::size_t i = 0; i < node.outputs(); ++i) outputs_.push_back(plain(node.output(i)));
  for (const auto& [name, value] : node.attrs()) add(name, value);
  node_ = {.op = node.node.op.c_str(),
           .name = node.node.name.c_str(),
           .inputs = static_cast<std::int32_t>(inputs_.size()),
           .outputs = static_cast<std::int32_t>(outputs_.size()),
           .attrs = static_cast<std::int32_t>(attrs_.size()),
           .input_types = inputs_.data(),
           .constants = constants_.data(),
           .output_types = outputs_.data(),
           .attr_list = attrs_.data()};
}

void NodeDescription::add(const std::string& name, const graph::AttrValue& value) {
  Flat flat = std::visit(Flatten{}, value);
  const std::string* text = std::get_if<std::string>(&value);
  // Moving a vector does not move its elements.
  integers_.push_back(std::move(flat.integers));
  reals_.push_back(std::move(flat.reals));
  const std::size_t count = text != nullptr ? text->size()
                            : flat.kind == AttrKind::real || flat.kind == AttrKind::reals
                                ? reals_.back().size()
                                : integers_.back().size();
  attrs_.push_back({.name = name.c_str(),
                    .kind = flat.kind,
                    .count = static_cast<std::int64_t>(count),
                    .integers = integers_.back().data(),
                    .reals = reals_.back().data(),
                    .text = text != nullptr ? text->c_str() : nullptr});
}

}  // namespace halfstep::backend::cuda

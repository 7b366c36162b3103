#include "graph/ports.h"

#include <algorithm>

namespace halfstep::graph {
namespace {

/// An attribute of type T, or nullptr.
template <class T>
const T* value_of(const Attrs& attrs, std::string_view name) {
  const AttrValue* value = attrs.find(name);
  return value != nullptr ? std::get_if<T>(value) : nullptr;
}

std::vector<PortType> port_types(const std::vector<Port>& ports,
                                 const OpDef& op,
                                 const Attrs& attrs) {
  std::vector<PortType> types;
  for (const Port& port : ports) {
    const TypeAttr* type = port.fixed ? nullptr : op.type_attr(port.type_attr);
    if (type != nullptr && type->is_list) {
      const auto* list = value_of<std::vector<DType>>(attrs, type->name);
      const int size = list != nullptr ? static_cast<int>(list->size()) : 0;
      for (int i = 0; i < size; ++i) types.push_back({type->name, i, std::nullopt});
      continue;
    }
    const auto* given = value_of<std::int64_t>(attrs, port.count_attr);
    const std::int64_t count = given != nullptr ? *given : 1;
    for (std::int64_t i = 0; i < count; ++i) {
      types.push_back(port.fixed ? PortType{{}, -1, port.fixed}
                                 : PortType{type->name, -1, std::nullopt});
    }
  }
  return types;
}

std::optional<std::vector<DType>> port_dtypes(const std::vector<Port>& ports,
                                              const OpDef& op,
                                              const Attrs& attrs) {
  for (const Port& port : ports) {
    // For these port_types() has defaults of TensorFlow, which a node may not rely on.
    const bool is_list = !port.fixed && op.type_attr(port.type_attr)->is_list;
    if ((is_list && value_of<std::vector<DType>>(attrs, port.type_attr) == nullptr) ||
        (!port.count_attr.empty() && value_of<std::int64_t>(attrs, port.count_attr) == nullptr)) {
      return std::nullopt;
    }
  }
  std::vector<DType> dtypes;
  for (const PortType& port : port_types(ports, op, attrs)) {
    const std::optional<DType> dtype = dtype_of(port, attrs);
    if (!dtype) return std::nullopt;
    dtypes.push_back(*dtype);
  }
  return dtypes;
}

}  // namespace

std::vector<PortType> input_port_types(const OpDef& op, const Attrs& attrs) {
  return port_types(op.inputs, op, attrs);
}

std::vector<PortType> output_port_types(const OpDef& op, const Attrs& attrs) {
  return port_types(op.outputs, op, attrs);
}

std::optional<std::vector<DType>> input_dtypes(const OpDef& op, const Attrs& attrs) {
  return port_dtypes(op.inputs, op, attrs);
}

std::optional<std::vector<DType>> output_dtypes(const OpDef& op, const Attrs& attrs) {
  return port_dtypes(op.outputs, op, attrs);
}

std::optional<DType> dtype_of(const PortType& port, const Attrs& attrs) {
  if (port.fixed) return port.fixed;
  if (port.index < 0) {
    const auto* dtype = value_of<DType>(attrs, port.attr);
    return dtype != nullptr ? std::optional(*dtype) : std::nullopt;
  }
  const auto* list = value_of<std::vector<DType>>(attrs, port.attr);
  const auto index = static_cast<std::size_t>(port.index);
  if (list == nullptr || index >= list->size()) return std::nullopt;
  return (*list)[index];
}

bool fits_inputs(const OpDef& op, std::size_t wanted, std::size_t given) {
  const auto optional = std::ranges::count_if(op.inputs, &Port::optional);
  return given <= wanted && given + static_cast<std::size_t>(optional) >= wanted;
}

}  // namespace halfstep::graph

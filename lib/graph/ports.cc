#include "graph/ports.h"

#include <algorithm>

namespace halfstep::graph {
namespace {

std::vector<PortType> port_types(const std::vector<Port>& ports,
                                 const OpDef& op,
                                 const Attrs& attrs) {
  std::vector<PortType> types;
  for (const Port& port : ports) {
    const TypeAttr* type = port.fixed ? nullptr : op.type_attr(port.type_attr);
    if (type != nullptr && type->is_list) {
      const AttrValue* value = attrs.find(type->name);
      const auto* list = value != nullptr ? std::get_if<std::vector<DType>>(value) : nullptr;
      const int size = list != nullptr ? static_cast<int>(list->size()) : 0;
      for (int i = 0; i < size; ++i) types.push_back({type->name, i, std::nullopt});
      continue;
    }
    std::int64_t count = 1;
    if (!port.count_attr.empty()) {
      const AttrValue* value = attrs.find(port.count_attr);
      const auto* number = value != nullptr ? std::get_if<std::int64_t>(value) : nullptr;
      if (number != nullptr) count = *number;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      types.push_back(port.fixed ? PortType{{}, -1, port.fixed}
                                 : PortType{type->name, -1, std::nullopt});
    }
  }
  return types;
}

}  // namespace

std::vector<PortType> input_port_types(const OpDef& op, const Attrs& attrs) {
  return port_types(op.inputs, op, attrs);
}

std::vector<PortType> output_port_types(const OpDef& op, const Attrs& attrs) {
  return port_types(op.outputs, op, attrs);
}

std::optional<DType> dtype_of(const PortType& port, const Attrs& attrs) {
  if (port.fixed) return port.fixed;
  const AttrValue* value = attrs.find(port.attr);
  if (value == nullptr) return std::nullopt;
  if (port.index < 0) {
    const auto* dtype = std::get_if<DType>(value);
    return dtype != nullptr ? std::optional(*dtype) : std::nullopt;
  }
  const auto* list = std::get_if<std::vector<DType>>(value);
  const auto index = static_cast<std::size_t>(port.index);
  if (list == nullptr || index >= list->size()) return std::nullopt;
  return (*list)[index];
}

bool fits_inputs(const OpDef& op, std::size_t wanted, std::size_t given) {
  const auto optional = std::ranges::count_if(op.inputs, &Port::optional);
  return given <= wanted && given + static_cast<std::size_t>(optional) >= wanted;
}

}  // namespace halfstep::graph

#include "backend/cpu/reference/loops.h"

namespace halfstep::backend::cpu {

Accepts executable(const NodeView& node, const Capabilities&) {
  constexpr DTypeSet k_executable{DType::float32,
                                  DType::float64,
                                  DType::float16,
                                  DType::bfloat16,
                                  DType::int32,
                                  DType::int64,
                                  DType::uint8,
                                  DType::boolean};
  const auto refusal = [](DType dtype) {
    return Accepts::no(fmt::format("{} is not computed with", halfstep::name(dtype)));
  };
  for (std::size_t i = 0; i < node.inputs(); ++i) {
    if (!k_executable.contains(node.input(i).dtype)) return refusal(node.input(i).dtype);
  }
  for (const graph::TensorType& type : node.node.outputs) {
    if (!k_executable.contains(type.dtype)) return refusal(type.dtype);
  }
  return Accepts::yes();
}

}  // namespace halfstep::backend::cpu

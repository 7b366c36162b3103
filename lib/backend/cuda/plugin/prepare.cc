#include "backend/cuda/plugin/prepare.h"

#include "core/concatenate.h"
#include "core/error.h"
#include "core/ranges.h"

namespace halfstep::backend::cuda::plugin {

const std::vector<Implementation>& implementations() {
  static const std::vector<Implementation> k_all =
      concatenate<Implementation>({array_kernels(),
                                   attention_kernels(),
                                   collective_kernels(),
                                   elementwise_kernels(),
                                   fused_matmul_kernels(),
                                   layer_kernels(),
                                   matmul_kernels(),
                                   random_kernels(),
                                   recurrent_kernels(),
                                   reduce_kernels(),
                                   step_kernels(),
                                   update_kernels()});
  return k_all;
}

Prepare implementation(std::string_view kernel) {
  const Implementation* found = find_or_null(implementations(), kernel, &Implementation::name);
  require(found != nullptr, "this plugin has no kernel {}", kernel);
  return found->prepare;
}

std::vector<std::int64_t> constant_input(const NodeView& node, std::size_t i) {
  std::optional<std::vector<std::int64_t>> values = node.constant(i);
  require(values.has_value(), "input {} of {} is not a constant", i, node.node.name);
  return *std::move(values);
}

std::vector<graph::TensorType> input_types(const NodeView& node) {
  std::vector<graph::TensorType> types;
  for (std::size_t i = 0; i < node.inputs(); ++i) types.push_back(node.input(i));
  return types;
}

}  // namespace halfstep::backend::cuda::plugin

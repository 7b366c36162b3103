#include "nn/evaluate_model.h"

#include "backend/backend.h"
#include "core/philox.h"
#include "plan/state.h"
#include "support/evaluate.h"

namespace halfstep::test {

Evaluated evaluate_model(const BuiltModel& built, const Fill& fill, std::int64_t ordinal) {
  testing::Tensors feeds, variables;
  for (const graph::Value& input : built.inputs) {
    Tensor x(DType::float32, built.graph.type(input).shape);
    for (std::int64_t i = 0; i < x.elements(); ++i) x.as<float>()[i] = fill(i);
    feeds[built.graph.node(input.node).name] = std::move(x);
  }
  feeds["ordinal"] = Tensor(DType::int64, {});
  feeds["ordinal"].as<std::int64_t>()[0] = ordinal;
  for (const graph::Variable& variable : built.graph.variables()) {
    Tensor value(variable.type.dtype, variable.type.shape);
    plan::initialize(value, variable.initializer, k_model_seed, variable.name);
    variables[variable.name] = std::move(value);
  }
  std::vector<graph::Value> fetches = built.forward.outputs;
  for (const nn::Assignment& a : built.forward.record.assignments) fetches.push_back(a.value);
  std::vector<Tensor> got =
      testing::evaluate(built.graph, backend::cpu_reference(), fetches, feeds, variables);
  Evaluated result;
  for (std::size_t i = 0; i < got.size(); ++i) {
    std::vector<Tensor>& to = i < built.forward.outputs.size() ? result.outputs : result.assigned;
    to.push_back(std::move(got[i]));
  }
  return result;
}

std::vector<double> elements(const Tensor& tensor) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    all.push_back(element_as_double(tensor.view(), i));
  }
  return all;
}

}  // namespace halfstep::test

#include "nn/model_text.h"

#include <fmt/core.h>

#include "config/load.h"

namespace halfstep::test {
namespace {

constexpr std::string_view k_config = R"(data: {{name: synthetic_digits}}
loss: mean_squared_error
optimizer: sgd
precision: {}
model: {}
)";

ModelText read(std::string_view model, std::string_view precision, Diagnostics& diagnostics) {
  const std::string text = fmt::format(fmt::runtime(k_config), precision, model);
  ModelText result;
  result.spec = config::parse_run_spec(config::load_text(text, "m", diagnostics), diagnostics);
  result.model = nn::read_model(result.spec, diagnostics);
  return result;
}

}  // namespace

ModelText read_model_text(std::string_view model, std::string_view precision) {
  Diagnostics diagnostics;
  ModelText result = read(model, precision, diagnostics);
  try {
    diagnostics.throw_if_any();
  } catch (const UserError& error) {
    for (const Problem& p : error.problems()) {
      std::string line = fmt::format("{}:{}: {}", p.where.line, p.where.column, p.message);
      if (!p.hint.empty()) line += fmt::format(" ({})", p.hint);
      result.problems.push_back(std::move(line));
    }
  }
  return result;
}

ModelText good_model(std::string_view model, std::string_view precision) {
  Diagnostics diagnostics;
  ModelText result = read(model, precision, diagnostics);
  diagnostics.throw_if_any();
  return result;
}

BuiltModel build_model(const nn::Model& model, std::int64_t batch, bool training) {
  BuiltModel built;
  graph::Builder b(built.graph, graph::op_table());
  built.ordinal = b.placeholder("ordinal", DType::int64, {});
  for (const nn::Model::Input& input : model.inputs) {
    std::vector<std::int64_t> extents{batch};
    extents.insert(extents.end(), input.shape.begin(), input.shape.end());
    built.inputs.push_back(b.placeholder("in_" + input.name, DType::float32, Shape(extents)));
  }
  built.forward =
      nn::build_forward(b, model, built.inputs, built.ordinal, k_model_seed, training, batch);
  return built;
}

}  // namespace halfstep::test

#include "fixture.h"

#include <algorithm>
#include <cmath>

#include "core/dispatch.h"
#include "core/error.h"
#include "core/philox.h"
#include "graph/graph.h"
#include "graph/ops/ops.h"
#include "support/kernels.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

/// Central differences are exact up to h^2 (truncation) and eps / h (rounding).
constexpr double k_difference_step = 0x1p-16;

Tensor constant(const graph::Node& node) {
  const graph::TensorType& type = node.outputs[0];
  std::vector<double> all;
  const graph::AttrValue& value = *node.attrs.find("value");
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&value)) {
    for (std::int64_t i : *integers) all.push_back(static_cast<double>(i));
  } else {
    all = std::get<std::vector<double>>(value);
  }
  if (all.size() == 1) all.resize(static_cast<std::size_t>(type.shape.elements()), all[0]);
  return tensor(type.dtype, type.shape, all);
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    sum += element_as_double(a.view(), i) * element_as_double(b.view(), i);
  }
  return sum;
}

}  // namespace

Tensor tensor(DType dtype, const Shape& shape, const std::vector<double>& values) {
  require(static_cast<std::int64_t>(values.size()) == shape.elements(),
          "{} values for shape {}",
          values.size(),
          to_string(shape));
  Tensor result(dtype, shape);
  for (std::size_t i = 0; i < values.size(); ++i) {
    set(result, static_cast<std::int64_t>(i), values[i]);
  }
  return result;
}

void set(Tensor& tensor, std::int64_t i, double value) {
  dispatch(tensor.dtype(), [&]<class T>(Type<T>) {
    tensor.as<T>()[i] = static_cast<T>(static_cast<Compute<T>>(value));
  });
}

Tensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed, double low, double high) {
  RandomStream random(seed, 0);
  std::vector<double> all;
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    all.push_back(low + (high - low) * static_cast<double>(random.uniform()));
  }
  return tensor(dtype, shape, all);
}

std::vector<double> values(const Tensor& tensor) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    all.push_back(element_as_double(tensor.view(), i));
  }
  return all;
}

double rounding(DType dtype, double x) {
  // Values pass through float on their way to 16 bits.
  const double twice = is_half(dtype) ? epsilon(DType::float32) : 0;
  return std::max(0.5 * (epsilon(dtype) + twice) * std::abs(x), smallest(dtype));
}

Fixture::Fixture() : Fixture(backend::cpu_reference()) {}

Fixture::Fixture(backend::Backend backend)
    : backend_(std::move(backend)), builder_(graph_, graph::op_table()) {}

graph::Value Fixture::input(Tensor tensor) {
  const graph::Value value = builder_.placeholder("input", tensor.dtype(), tensor.shape());
  held_[value.node] = std::move(tensor);
  return value;
}

graph::Value Fixture::variable(std::string name, Tensor tensor) {
  graph::Variable variable;
  variable.name = std::move(name);
  variable.type = {tensor.dtype(), tensor.shape()};
  const graph::Value handle = builder_.variable(std::move(variable));
  held_[handle.node] = std::move(tensor);
  return handle;
}

void Fixture::run() {
  graph::verify(graph_, "building");
  results_.clear();
  for (int id = 0; id < graph_.size(); ++id) {
    const graph::Node& node = graph_.node(id);
    const graph::Value first{id, 0};
    if (node.op == "Placeholder") {
      results_[first] = held_.at(id).clone();
    } else if (node.op == "Const") {
      results_[first] = constant(node);
    } else if (node.op == "ReadVariableOp") {
      results_[first] = held_.at(node.inputs[0].node).clone();
    } else if (node.op != "VarHandleOp") {
      const backend::NodeView view{graph_, node};
      const backend::Choice choice = backend::choose(backend_, view);
      require(choice.kernel != nullptr, "no kernel runs {}", node.op);
      std::vector<TensorView> in, out;
      for (const graph::Value& value : node.inputs) {
        const bool handle = graph_.type(value).dtype == DType::resource;
        in.push_back((handle ? held_.at(value.node) : results_.at(value)).view());
      }
      for (int port = 0; port < static_cast<int>(node.outputs.size()); ++port) {
        const graph::TensorType& type = node.outputs[static_cast<std::size_t>(port)];
        out.push_back((results_[{id, port}] = Tensor(type.dtype, type.shape)).view());
      }
      if (node.def->aliases) {
        std::copy_n(static_cast<const std::byte*>(in[0].data),
                    in[0].bytes(),
                    static_cast<std::byte*>(out[0].data));
        continue;
      }
      backend::Prepared prepared = choice.kernel->prepare(view, backend_.capabilities);
      const AlignedBuffer workspace(prepared.workspace_bytes);
      prepared.launch->run({in, out, workspace.data()});
    }
  }
}

const Tensor& Fixture::evaluate(graph::Value value) {
  run();
  return result(value);
}

double difference_tolerance() {
  // Truncation h^2, rounding of about a thousand additions and multiplications divided by h.
  return k_difference_step * k_difference_step + 1024 * epsilon(DType::float64) / k_difference_step;
}

std::vector<double> gradient_errors(Fixture& fixture,
                                    int node,
                                    const std::vector<std::size_t>& inputs,
                                    const std::vector<int>& ports) {
  const graph::Graph& graph = fixture.b().graph();
  const graph::Node& op = graph.node(node);
  std::vector<graph::Value> dy(op.outputs.size());
  std::vector<Tensor> directions;
  for (int port : ports) {
    const graph::TensorType& type = op.outputs[static_cast<std::size_t>(port)];
    directions.push_back(random_tensor(type.dtype, type.shape, 77 + static_cast<unsigned>(port)));
    dy[static_cast<std::size_t>(port)] = fixture.input(directions.back().clone());
  }
  require(op.def->gradient != nullptr, "{} has no gradient", op.op);
  const std::vector<graph::Value> dx = op.def->gradient({fixture.b(), op, node, dy});
  fixture.run();
  std::vector<Tensor> analytic;
  for (std::size_t i : inputs) analytic.push_back(fixture.result(dx[i]).clone());

  const auto along = [&] {
    fixture.run();
    double sum = 0;
    for (std::size_t p = 0; p < ports.size(); ++p) {
      sum += dot(directions[p], fixture.result({node, ports[p]}));
    }
    return sum;
  };
  std::vector<double> errors;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    double* x = fixture.held(op.inputs[inputs[k]]).as<double>();
    double worst = 0, largest = 0;
    for (std::int64_t i = 0; i < analytic[k].elements(); ++i) {
      const double kept = x[i];
      x[i] = kept + k_difference_step;
      const double above = along();
      x[i] = kept - k_difference_step;
      const double below = along();
      x[i] = kept;
      const double numeric = (above - below) / (2 * k_difference_step);
      const double given = element_as_double(analytic[k].view(), i);
      worst = std::max(worst, std::isnan(given) ? HUGE_VAL : std::abs(numeric - given));
      largest = std::max(largest, std::abs(numeric));
    }
    errors.push_back(worst / std::max(largest, 1e-300));
  }
  return errors;
}

bool is_direct(const backend::Kernel& kernel) {
  return kernel.name.starts_with("packed/conv direct");
}

bool by_halves(const backend::Kernel& kernel) { return kernel.name.ends_with("by halves"); }

Tensor magnitudes(const OpCase& c) {
  BuiltCase built = build(c, DType::float64, DType::float16);
  for (auto& [name, tensor] : built.feeds) {
    if (tensor.dtype() != DType::float64) continue;
    for (std::int64_t i = 0; i < tensor.shape().elements(); ++i) {
      tensor.as<double>()[i] = std::abs(tensor.as<double>()[i]);
    }
  }
  return std::move(halfstep::testing::run(built, backend::cpu_reference())[0]);
}

}  // namespace halfstep::testing

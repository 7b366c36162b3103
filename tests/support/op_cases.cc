#include "support/op_cases.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/concatenate.h"
#include "core/dispatch.h"
#include "core/error.h"
#include "core/philox.h"
#include "graph/ops/ops.h"
#include "support/tolerance.h"

namespace halfstep::testing {
namespace {

Operand operand(Operand::Kind kind, const Shape& shape, double low, double high) {
  return {.kind = kind, .shape = shape, .low = low, .high = high};
}

double between(RandomStream& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random.uniform());
}

/// NaN, infinities, zeros, subnormals and numbers near overflow of the dtypes in use.
double special_value(std::uint64_t k) {
  constexpr double k_infinity = std::numeric_limits<double>::infinity();
  constexpr double k_values[] = {std::numeric_limits<double>::quiet_NaN(),
                                 k_infinity,
                                 -k_infinity,
                                 0.0,
                                 -0.0,
                                 0x1p-24,
                                 -0x1p-140,
                                 60000,
                                 -3e38};
  return k_values[k % std::size(k_values)];
}

std::vector<double> elements_of(const Operand& o, RandomStream& random) {
  const auto count = static_cast<std::size_t>(o.shape.elements());
  std::vector<double> x(count);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (std::size_t i = 0; i < count; ++i) {
    switch (o.kind) {
      case Operand::Kind::away:
        x[i] = between(random, o.low, o.high) * (random.below(2) == 0 ? 1 : -1);
        break;
      case Operand::Kind::lattice:
        x[i] = o.low + 0.25 * (static_cast<double>(random.below(13)) - 6);
        break;
      case Operand::Kind::distinct:
        x[i] = o.low + (o.high - o.low) * (static_cast<double>(order[i]) + 0.5) /
                           static_cast<double>(count);
        break;
      case Operand::Kind::special:
        x[i] = random.below(2) == 0 ? special_value(i) : between(random, o.low, o.high);
        break;
      case Operand::Kind::integers:
        x[i] = o.given.empty() ? std::floor(between(random, o.low, o.high))
                               : static_cast<double>(o.given[i]);
        break;
      default:
        x[i] = between(random, o.low, o.high);
        break;
    }
  }
  return x;
}

Tensor tensor_of(const Operand& o, DType dtype, DType precision, RandomStream& random) {
  const std::vector<double> x = elements_of(o, random);
  Tensor tensor(dtype, o.shape);
  dispatch(dtype, [&]<class T>(Type<T>) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        // Unsigned and other integers: no NaN, and values in the range of all of them.
        const double fits = std::isnan(x[i]) ? 0 : std::clamp(x[i], -100.0, 100.0);
        tensor.as<T>()[i] =
            static_cast<T>(static_cast<int>(std::is_signed_v<T> ? fits : std::abs(fits)));
      } else {
        tensor.as<T>()[i] = static_cast<T>(static_cast<Compute<T>>(rounded(precision, x[i])));
      }
    }
  });
  return tensor;
}

/// The type attribute that is under test.
const graph::TypeAttr* tested_type(const graph::OpDef& op) {
  for (const graph::TypeAttr& t : op.types) {
    if (t.name == "T" || t.name == "Tparams" || t.name == "SrcT" || t.name == "dtype") return &t;
  }
  return nullptr;
}

}  // namespace

Operand uniform(const Shape& shape, double low, double high) {
  return operand(Operand::Kind::uniform, shape, low, high);
}
Operand away(const Shape& shape, double low, double high) {
  return operand(Operand::Kind::away, shape, low, high);
}
Operand lattice(const Shape& shape, double offset) {
  return operand(Operand::Kind::lattice, shape, offset, offset);
}
Operand distinct(const Shape& shape, double low, double high) {
  return operand(Operand::Kind::distinct, shape, low, high);
}
Operand special(const Shape& shape, double low, double high) {
  return operand(Operand::Kind::special, shape, low, high);
}
Operand variable(const Shape& shape, double low, double high) {
  return operand(Operand::Kind::variable, shape, low, high);
}
Operand number(double value) { return operand(Operand::Kind::scalar, {}, value, value); }
Operand ints(std::vector<std::int64_t> values) {
  Operand o;
  o.kind = Operand::Kind::constant;
  o.given = std::move(values);
  o.dtype = DType::int32;
  return o;
}
Operand int_scalar(std::int64_t value) {
  return typed(number(static_cast<double>(value)), DType::int32);
}
Operand whole(const Shape& shape, std::int64_t low, std::int64_t high) {
  return operand(
      Operand::Kind::integers, shape, static_cast<double>(low), static_cast<double>(high));
}
Operand indices(const Shape& shape, std::int64_t low, std::int64_t high, DType dtype) {
  return typed(whole(shape, low, high), dtype);
}
Operand flags(const Shape& shape) { return indices(shape, 0, 2, DType::boolean); }
Operand typed(Operand operand, DType dtype) {
  operand.dtype = dtype;
  return operand;
}

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> k_all = concatenate<OpCase>(
      {activation_cases(), ahead_cases(),         array_cases(),       attention_cases(),
       binary_cases(),     convolution_cases(),   elementwise_cases(), image_cases(),
       matmul_cases(),     normalization_cases(), optimizer_cases(),   packed_cases(),
       pooling_cases(),    random_cases(),        recurrent_cases(),   reduce_cases(),
       scaling_cases(),    softmax_cases(),       state_cases(),       unary_cases()});
  return k_all;
}

BuiltCase build(const OpCase& c, DType dtype, std::optional<DType> precision) {
  BuiltCase built;
  graph::Builder b(built.graph, graph::op_table());
  RandomStream random(name_key(c.name.data(), c.name.size()), 0);
  for (std::size_t i = 0; i < c.inputs.size(); ++i) {
    const Operand& o = c.inputs[i];
    const DType type = o.dtype.value_or(dtype);
    const std::string name = fmt::format("x{}", i);
    const DType to = !o.dtype && is_floating(dtype) ? precision.value_or(dtype)
                                                    : (is_floating(type) ? type : DType::float64);
    graph::Variable variable;
    switch (o.kind) {
      case Operand::Kind::constant:
        built.inputs.push_back(b.ints(o.given));
        break;
      case Operand::Kind::scalar:
        built.inputs.push_back(b.scalar(type, is_floating(type) ? rounded(to, o.low) : o.low));
        break;
      case Operand::Kind::variable:
        variable.name = name;
        variable.type = {type, o.shape};
        built.inputs.push_back(b.variable(variable));
        built.variables[name] = tensor_of(o, type, to, random);
        break;
      default:
        built.inputs.push_back(b.placeholder(name, type, o.shape));
        built.feeds[name] = tensor_of(o, type, to, random);
        break;
    }
  }
  built.node = b.add_node(c.op, built.inputs, c.attrs);
  return built;
}

std::vector<DType> dtypes_of(const OpCase& c) {
  const graph::OpDef* op = graph::op_table().find(c.op);
  require(op != nullptr, "case {}: no op is called {}", c.name, c.op);
  const bool free = std::any_of(
      c.inputs.begin(), c.inputs.end(), [](const Operand& o) { return !o.dtype.has_value(); });
  const graph::TypeAttr* type = tested_type(*op);
  if (!free || type == nullptr) return {DType::float32};
  std::vector<DType> dtypes;
  for (DType d : {DType::float32,
                  DType::float16,
                  DType::bfloat16,
                  DType::float64,
                  DType::int32,
                  DType::int64,
                  DType::uint8,
                  DType::boolean}) {
    if (type->allowed.contains(d) && (!c.dtypes || c.dtypes->contains(d))) dtypes.push_back(d);
  }
  return dtypes;
}

}  // namespace halfstep::testing

// Optimizer updates, one pass over memory: every element of the variable, its slots and its
// gradient is read once and written once. Arithmetic in float (double for float64), one rounding
// per stored tensor; the new weight uses the unrounded slot. When the last input `ok` is false
// nothing is written.

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "backend/cpu/packed/packing.h"
#include "backend/cpu/reference/loops.h"
#include "backend/cpu/reference/reference.h"
#include "backend/functions/std_math.h"
#include "backend/update_inputs.h"
#include "core/subnormals.h"
#include "graph/ops/ops.h"

namespace halfstep::backend::cpu {
namespace {

using functions::StdMath;
using functions::UpdateScalars;

/// Reads the scalars of a rule whose inputs have the dtype of T.
template <class T>
UpdateScalars<Compute<T>> read(const std::vector<ScalarInput<Compute<T>>>& inputs, const Args& a) {
  UpdateScalars<Compute<T>> scalars;
  for (const auto& [scalar, input] : inputs) {
    const TensorView& value = a.in[input];
    scalars.*scalar = static_cast<Compute<T>>(*value.as<T>());
  }
  return scalars;
}

/// Updates a variable, state[0], and its slots by a gradient.
template <class R, class T>
void update(const UpdateOptions& options,
            UpdateScalars<Compute<T>> scalars,
            std::span<const TensorView> state,
            const TensorView& gradient) {
  using C = Compute<T>;
  const C decay = static_cast<C>(options.weight_decay) * scalars.rate;
  R::template prepare<StdMath>(scalars);
  parallel_for(gradient.elements(), k_grain, [&](std::int64_t begin, std::int64_t end) {
    const FlushSubnormals flush;  // as the vector kernels do
    std::array<T*, R::slots + 1> to;
    for (std::size_t s = 0; s < to.size(); ++s) to[s] = state[s].as<T>();
    for (std::int64_t i = begin; i < end; ++i) {
      std::array<C, R::slots + 1> x;
      for (std::size_t s = 0; s < x.size(); ++s) x[s] = static_cast<C>(to[s][i]);
      if (decay != 0) x[0] -= x[0] * decay;
      const C g = static_cast<C>(gradient.as<T>()[i]);
      R::template apply<StdMath>(scalars, options.flag, g, x[0], x.data() + 1);
      for (std::size_t s = 0; s < x.size(); ++s) to[s][i] = static_cast<T>(x[s]);
    }
  });
}

bool skipped(const Args& a) {
  return a.in.back().dtype == DType::boolean && !*a.in.back().as<bool>();
}

template <class R>
Prepared prepare(const NodeView& node, const Capabilities&) {
  const graph::OpDef& op = *node.node.def;
  return dispatch_floating(node.attrs().get<DType>("T"), [&]<class T>(Type<T>) {
    return launch([options = UpdateOptions(node.attrs(), R::flag),
                   inputs = scalar_inputs<Compute<T>>(op),
                   gradient = graph::ops::update_ports(op).gradient](const Args& a) {
      if (skipped(a)) return;
      update<R, T>(options, read<T>(inputs, a), a.in.first(R::slots + 1), a.in[gradient]);
    });
  });
}

struct Row {
  std::string_view op, name;
  const char* flag;
  Prepared (*prepare)(const NodeView&, const Capabilities&);
  decltype(&update<functions::Adam, float>) update;  ///< for FusedUpdate and GroupedUpdate
};

template <class... R>
constexpr std::array<Row, sizeof...(R)> rows_of(functions::List<R...>) {
  return {{{R::op, k_kernel_name<R>.data(), R::flag, prepare<R>, update<R, float>}...}};
}
constexpr std::array k_rows = rows_of(functions::UpdateRules{});

/// The rule of a FusedUpdate or GroupedUpdate, in float32.
struct Rule {
  const Row& row;
  UpdateOptions options;
  std::vector<ScalarInput<float>> scalars;

  explicit Rule(const graph::Attrs& attrs)
      : row(*std::ranges::find(k_rows, attrs.get<std::string>("rule"), &Row::op)),
        options(attrs, row.flag),
        scalars(scalar_inputs<float>(*graph::op_table().find(row.op))) {}
};

Prepared prepare_fused(const NodeView& node, const Capabilities&) {
  const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node.node);
  return prepare_fused_update(node, node.input(ports.rule.gradient));
}

/// Converts the elements that the rows of two tensors share, and sets further ones of `to` to 0.
void convert_rows(const TensorView& from, const TensorView& to) {
  if (from.shape == to.shape) return convert(from, to);
  const std::int64_t columns = std::min(from.shape.back(), to.shape.back());
  std::memset(to.data, 0, to.bytes());
  for (std::int64_t row = 0; row < to.elements() / to.shape.back(); ++row) {
    const auto at = [&](const TensorView& view) {
      const auto skipped = static_cast<std::size_t>(row * view.shape.back());
      return TensorView{view.dtype,
                        Shape{columns},
                        static_cast<std::byte*>(view.data) + skipped * size_bytes(view.dtype)};
    };
    convert(at(from), at(to));
  }
}

/// A gradient in float32, times `factor`.
void unscale(const TensorView& given, float factor, const TensorView& to) {
  convert_rows(given, to);
  for (std::int64_t i = 0; i < to.elements(); ++i) to.as<float>()[i] *= factor;
}

/// Applies the rule to each tensor.
Prepared prepare_grouped(const NodeView& node, const Capabilities&) {
  const graph::ops::GroupedUpdatePorts ports = graph::ops::grouped_update_ports(node.attrs());
  std::int64_t largest = 0;
  std::vector<Shape> shapes;
  for (std::size_t t = 0; t < ports.tensors; ++t) {
    shapes.push_back(graph::ops::variable_type(node.producer(ports.handle(t, 0))).shape);
    largest = std::max(largest, shapes.back().elements());
  }
  const bool reciprocal = node.attrs().get<bool>("reciprocal");
  return launch(
      [=, rule = Rule(node.attrs())](const Args& a) {
        if (ports.guarded && !*a.in.back().as<bool>()) return;
        float factor = ports.unscaled ? *a.in[ports.unscale()].as<float>() : 1.0F;
        if (reciprocal) factor = 1 / factor;
        UpdateScalars<float> scalars;
        const std::int64_t* updates = nullptr;
        for (std::size_t i = 0; i < rule.scalars.size(); ++i) {
          const TensorView& value = a.in[ports.scalars + i];
          if (value.dtype == DType::int64) {
            updates = value.as<std::int64_t>();
          } else {
            scalars.*rule.scalars[i].scalar = *value.as<float>();
          }
        }
        if (updates != nullptr) {
          functions::set_powers<StdMath>(scalars, static_cast<float>(*updates));
        }
        for (std::size_t t = 0; t < ports.tensors; ++t) {
          const TensorView gradient{DType::float32, shapes[t], a.workspace};
          const bool decayed = !ports.decayed.empty() && ports.decayed[t] != 0;
          unscale(a.in[ports.gradients + t], decayed ? 1.0F : factor, gradient);
          for (std::int64_t i = 0; decayed && i < gradient.elements(); ++i) {
            const float w = a.in[ports.handle(t, 0)].as<float>()[i];
            float& g = gradient.as<float>()[i];
            g = (g + *a.in[ports.decay()].as<float>() * (w * 2)) * factor;
          }
          const auto state = a.in.subspan(ports.handle(t, 0), ports.rule.resources);
          rule.row.update(rule.options, scalars, state, gradient);
          if (ports.copies[t] < 0) continue;
          convert_rows(state[0], a.in[static_cast<std::size_t>(ports.copies[t])]);
        }
      },
      static_cast<std::size_t>(largest) * sizeof(float));
}

Prepared prepare_cast_variable(const NodeView&, const Capabilities&) {
  return launch([](const Args& a) { convert_rows(a.in[0], a.out[0]); });
}

}  // namespace

/// The rule on a gradient that is widened and unscaled first; then the variable is packed.
Prepared prepare_fused_update(const NodeView& node, const graph::TensorType& given) {
  const graph::ops::FusedUpdatePorts ports = graph::ops::fused_update_ports(node.node);
  const Shape shape = given.shape;
  std::vector<packed::Packing> packings;
  for (std::size_t i = ports.packed_begin; i < ports.packed_end; ++i) {
    packings.emplace_back(graph::TensorType{DType::float32, shape},
                          node.producer(i).attrs,
                          packed::portable_block_kernels());
  }
  return launch(
      [=, rule = Rule(node.attrs())](const Args& a) {
        if (ports.guarded && !*a.in.back().as<bool>()) return;
        const TensorView gradient{DType::float32, shape, a.workspace};
        unscale(a.in[ports.rule.gradient], *a.in[ports.unscale].as<float>(), gradient);
        const auto state = a.in.first(ports.rule.resources);
        rule.row.update(rule.options, read<float>(rule.scalars, a), state, gradient);
        for (std::size_t p = 0; p < packings.size(); ++p) {
          packings[p].pack_all(a.in[0].as<const std::byte>(),
                               a.in[ports.packed_begin + p].as<std::byte>());
        }
      },
      static_cast<std::size_t>(shape.elements()) * sizeof(float));
}

std::vector<Kernel> update_kernels() {
  std::vector<Kernel> kernels;
  for (const Row& row : k_rows) {
    kernels.push_back({.op = row.op, .name = row.name, .prepare = row.prepare});
  }
  kernels.push_back(
      {.op = "FusedUpdate", .name = "reference/fused_update", .prepare = prepare_fused});
  kernels.push_back(
      {.op = "GroupedUpdate", .name = "reference/grouped_update", .prepare = prepare_grouped});
  kernels.push_back(
      {.op = "CastVariable", .name = "reference/cast_variable", .prepare = prepare_cast_variable});
  return kernels;
}

}  // namespace halfstep::backend::cpu

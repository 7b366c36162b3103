#include "graph/builder.h"

#include "core/ranges.h"
#include "graph/op_handles.h"
#include "graph/ports.h"

namespace halfstep::graph {
namespace {

/// Sets a type or count attribute; two inputs that imply different values are an error.
void bind_attr(Attrs& attrs, const OpDef& op, const std::string& name, AttrValue value) {
  const AttrValue* have = attrs.find(name);
  require(
      have == nullptr || *have == value, "{}: inputs disagree on attribute '{}'", op.name, name);
  attrs.set(name, std::move(value));
}

/// Infers type and count attributes from the inputs. A signature with one variable-length port is
/// unambiguous: that port takes the inputs that remain.
void bind_inputs(const OpDef& op, const std::vector<OpInput>& inputs, Attrs& attrs) {
  std::size_t fixed = 0;
  bool variadic = false;
  for (const Port& p : op.inputs) {
    const bool many =
        !p.count_attr.empty() || (!p.type_attr.empty() && op.type_attr(p.type_attr)->is_list);
    variadic = variadic || many;
    fixed += many || p.optional ? 0 : 1;
  }
  require(inputs.size() >= fixed && (variadic || inputs.size() <= op.inputs.size()),
          "{} takes {} inputs, got {}",
          op.name,
          op.inputs.size(),
          inputs.size());
  std::size_t at = 0;
  for (const Port& p : op.inputs) {
    const bool list = !p.type_attr.empty() && op.type_attr(p.type_attr)->is_list;
    if (!list && p.count_attr.empty()) {
      if (at == inputs.size() && p.optional) break;
      const DType dtype = inputs[at].type.dtype;
      if (p.fixed) {
        require(dtype == *p.fixed,
                "{}: input '{}' must be {}, got {}",
                op.name,
                p.name,
                halfstep::name(*p.fixed),
                halfstep::name(dtype));
      } else {
        bind_attr(attrs, op, p.type_attr, dtype);
      }
      ++at;
      continue;
    }
    const std::size_t count = inputs.size() - fixed;
    if (list) {
      std::vector<DType> dtypes;
      for (std::size_t i = 0; i < count; ++i) dtypes.push_back(inputs[at + i].type.dtype);
      bind_attr(attrs, op, p.type_attr, std::move(dtypes));
    } else {
      bind_attr(attrs, op, p.count_attr, static_cast<std::int64_t>(count));
      for (std::size_t i = 0; i < count && !p.type_attr.empty(); ++i) {
        bind_attr(attrs, op, p.type_attr, inputs[at + i].type.dtype);
      }
    }
    at += count;
  }
}

void fill_defaults(const OpDef& op, Attrs& attrs) {
  for (const TypeAttr& t : op.types) {
    if (attrs.find(t.name) == nullptr && t.default_dtype) attrs.set(t.name, *t.default_dtype);
    const AttrValue* value = attrs.find(t.name);
    require(value != nullptr, "{}: type attribute '{}' is missing", op.name, t.name);
    if (const auto* dtype = std::get_if<DType>(value)) {
      require(t.allowed.contains(*dtype),
              "{}: {} may not be {}",
              op.name,
              t.name,
              halfstep::name(*dtype));
    }
  }
  for (const AttrDef& a : op.attrs) {
    if (attrs.find(a.name) == nullptr && a.default_value) attrs.set(a.name, *a.default_value);
  }
}

}  // namespace

OpInstance describe(const OpTable& ops,
                    std::string_view op_name,
                    std::vector<OpInput> inputs,
                    Attrs attrs) {
  const OpDef* op = ops.find(op_name);
  require(op != nullptr && op->infer != nullptr, "op '{}' cannot be executed", op_name);
  bind_inputs(*op, inputs, attrs);
  fill_defaults(*op, attrs);

  Node node;
  node.op = op_name;
  node.def = op;
  node.attrs = std::move(attrs);
  const std::optional<std::vector<DType>> dtypes = output_dtypes(*op, node.attrs);
  require(dtypes.has_value(), "{}: output types cannot be inferred", op_name);
  InferContext context{node, std::move(inputs)};
  const std::vector<Shape> shapes = op->infer(context);
  require(shapes.size() == dtypes->size(),
          "{}: shape rule gives {} outputs, wanted {}",
          op_name,
          shapes.size(),
          dtypes->size());
  for (std::size_t i = 0; i < shapes.size(); ++i) node.outputs.push_back({(*dtypes)[i], shapes[i]});
  return {std::move(node), std::move(context.in)};
}

int Builder::add_node(std::string_view op_name,
                      std::vector<Value> inputs,
                      Attrs attrs,
                      std::string_view node_name) {
  auto in = mapped<OpInput>(inputs, [&](const Value& value) { return graph_.input(value); });
  Node node;
  try {
    node = describe(ops_, op_name, std::move(in), std::move(attrs)).node;
  } catch (const ShapeError& error) {
    throw UserError(ErrorKind::config,
                    origin_.where,
                    error.what(),
                    origin_.layer.empty() ? "" : fmt::format("in layer '{}'", origin_.layer));
  }
  const std::string_view base = node_name.empty() ? op_name : node_name;
  node.name =
      graph_.unique_name(prefix_.empty() ? std::string(base) : fmt::format("{}/{}", prefix_, base));
  node.inputs = std::move(inputs);
  node.origin = origin_;
  return graph_.add(std::move(node));
}

Value Builder::add(std::string_view op,
                   std::vector<Value> inputs,
                   Attrs attrs,
                   std::string_view name) {
  return {add_node(op, std::move(inputs), std::move(attrs), name), 0};
}

Value Builder::scalar(DType dtype, double value) { return fill(dtype, {}, value); }

Value Builder::fill(DType dtype, const Shape& shape, double value) {
  if (is_floating(dtype)) return constant(dtype, shape, std::vector<double>{value});
  return constant(dtype, shape, std::vector<std::int64_t>{static_cast<std::int64_t>(value)});
}

Value Builder::ints(std::vector<std::int64_t> values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  return constant(DType::int32, shape, std::move(values));
}

Value Builder::floats(const Shape& shape, std::vector<double> values) {
  return constant(DType::float32, shape, std::move(values));
}

Value Builder::constant(DType dtype, const Shape& shape, AttrValue value) {
  Attrs attrs{{"dtype", dtype}, {"shape", shape}, {"value", std::move(value)}};
  for (const Value& have : constants_) {
    if (graph_.node(have.node).attrs == attrs) return have;
  }
  constants_.push_back(add("Const", {}, std::move(attrs), "Const"));
  return constants_.back();
}

Value Builder::cast(Value x, DType dtype) {
  if (type(x).dtype == dtype) return x;
  return add("Cast", {x}, {{"DstT", dtype}});
}

Value Builder::placeholder(std::string_view name, DType dtype, const Shape& shape) {
  const Value slot = add("Placeholder", {}, {{"dtype", dtype}, {"shape", shape}}, name);
  graph_.node(slot.node).preserve = true;  // the host writes it, whether or not it is read
  return slot;
}

Value Builder::variable(Variable variable) {
  if (const Variable* known = graph_.variable(variable.name)) {
    require(*known == variable, "variable '{}' exists and is another one", variable.name);
    for (int id = 0; id < graph_.size(); ++id) {
      const Node& node = graph_.node(id);
      if (node.is(ops::k_var_handle_op) &&
          node.attrs.get<std::string>("shared_name") == variable.name) {
        return {id, 0};
      }
    }
  }
  const Value handle = add("VarHandleOp",
                           {},
                           {{"dtype", variable.type.dtype},
                            {"shape", variable.type.shape},
                            {"shared_name", variable.name}},
                           "handle");
  graph_.rename(handle.node, graph_.unique_name(variable.name));
  graph_.variables().push_back(std::move(variable));
  return handle;
}

Value Builder::read(Value handle) {
  const Node& from = graph_.node(handle.node);
  const DType dtype = from.attrs.get<DType>("dtype");
  const Value value = add("ReadVariableOp", {handle}, {{"dtype", dtype}}, "ReadVariableOp");
  graph_.rename(value.node, graph_.unique_name(from.name + "/read"));
  return value;
}

}  // namespace halfstep::graph

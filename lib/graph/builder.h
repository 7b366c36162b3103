#pragma once
// Builder of executable graphs. Each added node gets inferred and checked types, and its origin:
// layer and config line.

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace halfstep::graph {

/// `op` on inputs of these types, with attributes bound and outputs inferred as Builder::add()
/// would. Errors: ShapeError when the shapes do not fit; InternalError as Builder::add().
OpInstance describe(const OpTable& ops,
                    std::string_view op,
                    std::vector<OpInput> inputs,
                    Attrs attrs = {});

class Builder {
 public:
  Builder(Graph& graph, const OpTable& ops) : graph_(graph), ops_(ops) {}

  Graph& graph() { return graph_; }
  const OpTable& ops() const { return ops_; }
  const TensorType& type(Value value) const { return graph_.type(value); }
  DType dtype(Value value) const { return type(value).dtype; }
  const Shape& shape(Value value) const { return type(value).shape; }

  /// Adds a node and returns its first output. Type and count attributes are inferred from the
  /// inputs, other attributes default from the op's definition. The name is `<scope>/<name or op>`.
  /// Errors: UserError(config) at the scope's Where when the shapes do not fit; InternalError for
  /// an unknown op, a missing attribute or a dtype that the op does not allow.
  Value add(std::string_view op,
            std::vector<Value> inputs,
            Attrs attrs = {},
            std::string_view name = {});
  /// The same, returning the node, for ops with several outputs or none.
  int add_node(std::string_view op,
               std::vector<Value> inputs,
               Attrs attrs = {},
               std::string_view name = {});

  /// Const nodes, shared per graph by value.
  Value scalar(DType dtype, double value);
  Value ints(std::vector<std::int64_t> values);
  /// float32, in row-major order.
  Value floats(const Shape& shape, std::vector<double> values);
  /// A tensor filled with one value.
  Value fill(DType dtype, const Shape& shape, double value);

  /// `x` itself when it has that dtype already, else a Cast.
  Value cast(Value x, DType dtype);

  /// A Placeholder, which the host feeds before each step.
  Value placeholder(std::string_view name, DType dtype, const Shape& shape);

  /// Declares a variable and returns its handle (VarHandleOp); that of the same variable, where it
  /// was declared before.
  Value variable(Variable variable);
  /// The stored value of a variable handle, in its own dtype.
  Value read(Value handle);

  /// The origin given to nodes added from now on; see ScopeGuard.
  Origin& origin() { return origin_; }
  std::string& prefix() { return prefix_; }

 private:
  Value constant(DType dtype, const Shape& shape, AttrValue value);

  Graph& graph_;
  const OpTable& ops_;
  std::vector<Value> constants_;
  Origin origin_;
  std::string prefix_;
};

/// Sets a builder's origin and name prefix until the end of the block.
class ScopeGuard {
 public:
  ScopeGuard(Builder& builder, Origin origin, std::string prefix)
      : builder_(builder), origin_(builder.origin()), prefix_(builder.prefix()) {
    builder.origin() = std::move(origin);
    builder.prefix() = std::move(prefix);
  }
  ~ScopeGuard() {
    builder_.origin() = std::move(origin_);
    builder_.prefix() = std::move(prefix_);
  }
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Builder& builder_;
  Origin origin_;
  std::string prefix_;
};

/// Makes the nodes that are added in this scope parts of a composite op.
inline ScopeGuard composite_scope(Builder& b, const CompositeOp& op) {
  Origin origin = b.origin();
  origin.composite = &op;
  return {b, std::move(origin), b.prefix()};
}

}  // namespace halfstep::graph

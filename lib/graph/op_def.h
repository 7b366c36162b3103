#pragma once
// Definition of an op: its ports with type attributes, its other attributes, shape rule and
// gradient. An op is written as a signature in the manner of TensorFlow's op registry:
//
//   define("MatMul", "a: T, b: T -> product: T",
//          "T: {bfloat16, half, float, double}, transpose_a: bool = false",
//          {.infer = infer_matmul, .gradient = gradient_matmul})
//
// Ports:  `x: T` typed by attribute T; `x: float` fixed dtype; `values: N*T` N ports of type T;
//         `args: Tin` where Tin is a list(type) attribute: one port per element;
//         a trailing `?` after the name marks an optional last input; `ref: Ref(T)` a ref input.
// Attributes: `T: type`, `T: {half, float}`, `T: numbertype` (also realnumbertype, floattype,
//         halffloat = {half, bfloat16, float}), with `= float` a default; `Tin: list(type)`;
//         `N: int`, `axis: int = -1`, `keep_dims: bool = false`, `f: float = 0.5`, `s: string`,
//         `shape: shape`, `strides: list(int) = [1, 1]`, `v: list(float)`.

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"
#include "graph/attr.h"

namespace halfstep::graph {

struct Node;
class Builder;
class Graph;

/// Output `port` of node `node`.
struct Value {
  int node = -1;
  int port = 0;

  bool valid() const { return node >= 0; }
  auto operator<=>(const Value&) const = default;
};

/// dtype and shape of a value.
struct TensorType {
  DType dtype = DType::float32;
  Shape shape;

  bool operator==(const TensorType&) const = default;
};

/// A type attribute of an op and the dtypes it allows.
struct TypeAttr {
  std::string name;
  DTypeSet allowed;
  std::optional<DType> default_dtype;
  bool is_list = false;
};

/// An input or output argument; with a count or list attribute it expands to several ports.
struct Port {
  std::string name;
  std::string type_attr;       ///< empty when fixed
  std::optional<DType> fixed;  ///< hard-wired dtype
  std::string count_attr;      ///< "N" of `N*T`, else empty
  bool optional = false;
  bool ref = false;
};

enum class AttrKind { boolean, integer, real, text, shape, integers, reals, elementwise };

/// An attribute that is not a type.
struct AttrDef {
  std::string name;
  AttrKind kind = AttrKind::integer;
  std::optional<AttrValue> default_value;
};

/// Thrown by shape rules; the builder turns it into a UserError at the node's config location.
class ShapeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An input of an op: its type and, in a graph, the value that it reads.
struct OpInput {
  TensorType type;
  const Node* producer = nullptr;
  Value value = {};

  /// The integers of a Const; nothing for other producers.
  std::optional<std::vector<std::int64_t>> constant() const;
};

/// The arguments of a shape rule. `node` has its attributes, and its inputs where it is in a graph.
struct InferContext {
  const Node& node;
  std::vector<OpInput> in;

  const TensorType& input(std::size_t i) const { return in[i].type; }
  std::size_t inputs() const { return in.size(); }
  /// The node that computes input `i`. Errors: ShapeError when there is none.
  const Node& producer(std::size_t i) const;
  /// The integers of input `i` when it is a Const. Errors: ShapeError when it is not.
  std::vector<std::int64_t> constant(std::size_t i) const;
};

/// Shapes of the outputs. Errors: ShapeError, naming the expected and the actual shape.
using InferShapes = std::vector<Shape> (*)(const InferContext& context);

/// The arguments of a gradient rule, which adds nodes to the graph of builder `b`.
struct GradientContext {
  Builder& b;
  const Node& node;
  int id;
  std::span<const Value> dy;  ///< per output; invalid where no gradient arrives

  Value input(std::size_t i) const;
  Value output(std::size_t i) const { return {id, static_cast<int>(i)}; }
};

/// Gradients of the inputs, one per input; an invalid Value where there is none.
using Gradient = std::vector<Value> (*)(const GradientContext& context);

/// `tf` ops are TensorFlow's (or halfstep's own at that level) and are the input of the automatic
/// rewrite; `lowered` ops are created by fusion after it.
enum class Stage { tf, lowered };

/// How passes::promote_weight_gradient() computes a 16-bit result in float32: not at all, from its
/// operands cast to float32, or from operands that are promoted themselves.
enum class Promotion { none, operands, terms };

/// Optional properties of an op. An op without `infer` cannot be executed, only explained in an
/// imported graph.
struct OpTraits {
  InferShapes infer = nullptr;
  Gradient gradient = nullptr;
  bool stateful = false;
  Stage stage = Stage::tf;
  /// Number of tensor operands inside a FusedElementwise, 0 if it cannot be fused; further inputs
  /// are shapes.
  std::size_t elementwise = 0;
  bool aliases = false;  ///< output 0 shares the memory of input 0: no kernel launch
  bool update = false;   ///< an optimizer update, which can be the rule of a FusedUpdate
  Promotion promotion = Promotion::none;
};

struct OpDef : OpTraits {
  std::string name;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<TypeAttr> types;
  std::vector<AttrDef> attrs;

  const TypeAttr* type_attr(std::string_view attr) const;
  const AttrDef* attr(std::string_view attr) const;
  /// Whether the attribute is the number of ports of an input or output.
  bool is_count(std::string_view attr) const;
};

/// Parses a signature. Errors: InternalError for a malformed one.
OpDef define(std::string_view name,
             std::string_view ports,
             std::string_view attrs,
             OpTraits traits = {});

/// Ops by name.
class OpTable {
 public:
  explicit OpTable(std::vector<OpDef> ops);
  /// nullptr when no op has that name.
  const OpDef* find(std::string_view name) const;
  std::span<const OpDef> all() const { return ops_; }

 private:
  std::vector<OpDef> ops_;  // sorted by name
};

}  // namespace halfstep::graph

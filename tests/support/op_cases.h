#pragma once
// Small examples of every op, in one table that several tests iterate over: text form and verifier,
// each kernel against the reference in every dtype it accepts, gradients by finite differences. The
// cases of a family are in cases/<family>.cc.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor.h"
#include "graph/builder.h"

namespace halfstep::testing {

/// One input of a case, and how its elements are made.
struct Operand {
  enum class Kind {
    uniform,   ///< evenly spread in [low, high)
    away,      ///< |x| in [low, high), either sign: away from the kink at 0
    lattice,   ///< low + k / 4 for random k from -6 to 6: away from kinks between the steps
    distinct,  ///< a permutation of evenly spread values in [low, high): no two are near
    special,   ///< like uniform, with NaN, infinities, zeros and very small and large numbers
    integers,  ///< integers in [low, high), or the elements `given`
    constant,  ///< a Const node with the elements `given`
    scalar,    ///< a Const scalar, `low`
    variable,  ///< the handle of a variable whose elements are uniform in [low, high)
  };
  Kind kind = Kind::uniform;
  Shape shape;
  double low = -2;
  double high = 2;
  std::vector<std::int64_t> given{};
  std::optional<DType> dtype{};  ///< the dtype under test when absent
};

Operand uniform(const Shape& shape, double low = -2, double high = 2);
Operand away(const Shape& shape, double low = 0.25, double high = 2);
Operand lattice(const Shape& shape, double offset = 0);
Operand distinct(const Shape& shape, double low = -2, double high = 2);
Operand special(const Shape& shape, double low = -2, double high = 2);
Operand variable(const Shape& shape, double low = -2, double high = 2);
/// A scalar Const of the dtype under test.
Operand number(double value);
/// A vector Const of int32, as axes, shapes and paddings are given.
Operand ints(std::vector<std::int64_t> values);
/// A scalar Const of int32.
Operand int_scalar(std::int64_t value);
/// Random integers in [low, high).
Operand indices(const Shape& shape, std::int64_t low, std::int64_t high, DType = DType::int32);
/// The same in the dtype under test.
Operand whole(const Shape& shape, std::int64_t low, std::int64_t high);
/// Random booleans.
Operand flags(const Shape& shape);
/// `operand` in a dtype of its own.
Operand typed(Operand operand, DType dtype);

struct OpCase {
  std::string name;  ///< "MatMul/transposed"
  std::string op;
  graph::Attrs attrs{};
  std::vector<Operand> inputs{};
  /// The tolerance: roundings on the way to one result, and the largest magnitude among the numbers
  /// that are rounded.
  std::int64_t terms = 8;
  double magnitude = 4;
  /// Whether results inside the op are rounded to the dtype under test as well.
  bool rounds_inside = false;
  /// Outputs whose gradient is looked at.
  std::vector<int> differentiated{0};
  /// Inputs that the gradient rule takes for constants although the value depends on them.
  std::vector<std::size_t> no_gradient{};
  /// The dtype in which the roundings on the way are counted.
  DType accumulated(DType dtype) const { return rounds_inside ? dtype : DType::float32; }
  /// Only these, where the op's signature allows more than it computes.
  std::optional<DTypeSet> dtypes{};
  /// False where finite differences make no sense.
  bool check_gradient = true;
};

/// All cases, by family.
const std::vector<OpCase>& op_cases();

// Rows of the families.
std::vector<OpCase> activation_cases();
std::vector<OpCase> ahead_cases();
std::vector<OpCase> array_cases();
std::vector<OpCase> attention_cases();
std::vector<OpCase> binary_cases();
std::vector<OpCase> convolution_cases();
std::vector<OpCase> elementwise_cases();
std::vector<OpCase> image_cases();
std::vector<OpCase> matmul_cases();
std::vector<OpCase> normalization_cases();
std::vector<OpCase> optimizer_cases();
std::vector<OpCase> packed_cases();
std::vector<OpCase> pooling_cases();
std::vector<OpCase> random_cases();
std::vector<OpCase> recurrent_cases();
std::vector<OpCase> reduce_cases();
std::vector<OpCase> scaling_cases();
std::vector<OpCase> softmax_cases();
std::vector<OpCase> state_cases();
std::vector<OpCase> unary_cases();

/// Tensors by the name of their placeholder or variable.
using Tensors = std::map<std::string, Tensor, std::less<>>;

/// A case as a graph of its own, and the values to run it with.
struct BuiltCase {
  graph::Graph graph;
  std::vector<graph::Value> inputs;
  int node = -1;
  Tensors feeds;
  Tensors variables;
};

/// Builds `c` with `dtype` under test. The elements depend on the case's name alone, rounded to
/// `rounded`, so that a float64 graph can be run on the inputs of a 16-bit one.
BuiltCase build(const OpCase& c, DType dtype, std::optional<DType> rounded = {});

/// The dtypes halfstep computes with that the case can be built in.
std::vector<DType> dtypes_of(const OpCase& c);

}  // namespace halfstep::testing

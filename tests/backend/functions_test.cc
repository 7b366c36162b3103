// The scalar functions against the signatures of their ops, and against their op's properties.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <string_view>

#include "backend/cpu/vector/kernels.h"
#include "backend/functions/lists.h"
#include "backend/functions/std_math.h"
#include "graph/ops/ops.h"

namespace halfstep::testing {
namespace {

namespace functions = backend::functions;
namespace vector = backend::cpu::vector;
using functions::Domain;
using functions::StdMath;

template <class... F, class Visit>
void for_each(functions::List<F...>, Visit visit) {
  (visit(F{}), ...);
}

using AllFunctions = functions::
    Join<functions::UnaryFunctions, functions::BinaryFunctions, functions::TernaryFunctions>;

bool allows(const graph::OpDef& op, DType dtype) {
  const graph::Port& port = op.inputs[0];
  if (port.fixed) return *port.fixed == dtype;
  return op.type_attr(port.type_attr)->allowed.contains(dtype);
}

}  // namespace

TEST_CASE("functions: operands, result, attribute and dtypes are those of the op's signature") {
  for_each(AllFunctions{}, []<class F>(F) {
    CAPTURE(std::string_view(F::op));
    const graph::OpDef* op = graph::op_table().find(F::op);
    REQUIRE(op != nullptr);
    CHECK(op->inputs.size() == F::arity);
    const bool boolean = op->outputs[0].fixed == DType::boolean;
    CHECK(boolean == (F::predicate || F::domain == Domain::boolean));
    const bool real = std::any_of(op->attrs.begin(), op->attrs.end(), [](const auto& attr) {
      return attr.kind == graph::AttrKind::real;
    });
    CHECK(real == (F::attribute != nullptr));
    if constexpr (F::attribute != nullptr) {
      const graph::AttrDef* attribute = op->attr(F::attribute);
      REQUIRE(attribute != nullptr);
      CHECK(attribute->kind == graph::AttrKind::real);
    }
    CHECK(allows(*op, DType::float32) == (F::domain != Domain::boolean));
    CHECK(allows(*op, DType::boolean) ==
          (F::domain == Domain::boolean || F::domain == Domain::any));
    if (F::domain == Domain::boolean) CHECK_FALSE(allows(*op, DType::int32));
  });
}

TEST_CASE("functions: the vector kernels have a loop of each that is vectorized, and of no other") {
  const vector::Loops& loops = vector::baseline_loops();
  for_each(AllFunctions{}, [&]<class F>(F) {
    CAPTURE(std::string_view(F::op));
    const vector::MapLoop* row = vector::find_entry(loops.maps, F::op);
    CHECK((row != nullptr) == F::vectorized);
    if (row == nullptr) return;
    CHECK(row->inputs == F::arity);
    CHECK(row->exact == F::exact);
  });
}

TEST_CASE("functions: an exact one gives its operand, negated or not, or a small integer") {
  const double values[] = {-1e30, -7.1, -6, -0.3, -0.0, 0, 1e-30, 0.7, 6, 9.4, 1e30};
  for_each(AllFunctions{}, [&]<class F>(F) {
    if constexpr (F::exact) {
      CAPTURE(std::string_view(F::op));
      for (const double x : values) {
        for (const double y : values) {
          double result = 0;
          if constexpr (F::arity == 1) {
            result = functions::call<F, StdMath>(0.0, x);
          } else if constexpr (F::arity == 2) {
            result = functions::call<F, StdMath>(0.0, x, y);
          } else {
            result = functions::call<F, StdMath>(0.0, x, y, std::abs(y));
          }
          const double size = std::abs(result);
          const bool small = size <= 8 && size == std::floor(size);
          CHECK((size == std::abs(x) || size == std::abs(y) || small));
        }
      }
    }
  });
}

TEST_CASE("functions: NaN propagates through each of floating values") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for_each(functions::UnaryFunctions{}, [&]<class F>(F) {
    constexpr bool k_constant =
        std::is_same_v<F, functions::OnesLike> || std::is_same_v<F, functions::ZerosLike>;
    if constexpr (!F::predicate && F::domain != Domain::boolean && !k_constant) {
      CAPTURE(std::string_view(F::op));
      CHECK(std::isnan(functions::call<F, StdMath>(0.2, nan)));
    }
  });
}

}  // namespace halfstep::testing

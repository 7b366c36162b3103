#pragma once
// The scalar functions that the body of a FusedElementwise may have (graph/elementwise_body.h):
// those of lists.h, and ops that are scalar functions only inside a body, whose operands are
// broadcast beforehand and where bool is 0 or 1.

#include "backend/functions/lists.h"

namespace halfstep::backend::functions {

struct BiasAdd : Add {
  static constexpr const char* op = "BiasAdd";
};

struct BroadcastTo : Function<1> {
  static constexpr const char* op = "BroadcastTo";
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C x) {
    return x;
  }
};

struct Select : Function<3> {
  static constexpr const char* op = "Select";
  static constexpr bool exact = true;
  template <class Math, class C>
  static constexpr C apply(C condition, C t, C e) {
    return condition != 0 ? t : e;
  }
};

struct SelectV2 : Select {
  static constexpr const char* op = "SelectV2";
};

using BodyFunctions = Join<UnaryFunctions,
                           BinaryFunctions,
                           TernaryFunctions,
                           List<BiasAdd, BroadcastTo, Select, SelectV2>>;

}  // namespace halfstep::backend::functions

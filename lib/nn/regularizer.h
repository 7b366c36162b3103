#pragma once
// Keras's L1 and L2 penalties: `l2` (0.01), or `{l1: 1e-5, l2: 1e-4}`.

#include <optional>
#include <string_view>

#include "config/fields.h"
#include "graph/builder.h"

namespace halfstep::nn {

/// A penalty as written: a bare name has Keras's factor 0.01, a factor missing from a map is 0.
struct RegularizerSpec {
  enum class Type { l1, l2, l1_l2 };

  std::optional<Type> type;
  std::optional<double> l1;
  std::optional<double> l2;

  double l1_factor() const;
  double l2_factor() const;
  void fields(config::Fields& f);
};

/// l1 * sum|x| + l2 * sum x^2 as a scalar.
/// Dtypes: float32; 16-bit x is cast first, so that the sum of squares does not overflow.
graph::Value penalty(graph::Builder& b, const RegularizerSpec& spec, graph::Value x);

/// Declares a regularizer field of a layer.
void regularizer_field(config::Fields& f,
                       std::string_view name,
                       std::optional<RegularizerSpec>& spec,
                       std::string_view doc);

}  // namespace halfstep::nn

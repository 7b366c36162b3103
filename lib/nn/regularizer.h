#pragma once
// Keras's L1 and L2 penalties: `l2` (0.01), or `{l1: 1e-5, l2: 1e-4}`.

#include <optional>

#include "config/fields.h"
#include "graph/builder.h"

namespace halfstep::nn {

struct RegularizerSpec {
  double l1 = 0;
  double l2 = 0;
};

/// l1 * sum|x| + l2 * sum x^2 as a float32 scalar.
graph::Value penalty(graph::Builder& b, const RegularizerSpec& spec, graph::Value x);

/// Declares a regularizer field of a layer.
void regularizer_field(config::Fields& f,
                       std::string_view name,
                       std::optional<RegularizerSpec>& spec,
                       std::string_view doc);

}  // namespace halfstep::nn

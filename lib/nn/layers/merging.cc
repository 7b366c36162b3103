#include <fmt/core.h>

#include "nn/layers/table.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Combines its inputs two at a time, left to right; extents of one are stretched.
struct Elementwise {
  std::string_view op;

  void fields(config::Fields&) {}
  Value build(LayerContext& c, std::span<const Value> x) const {
    Value y = x[0];
    for (const Value& next : x.subspan(1)) y = c.b.add(op, {y, next});
    return y;
  }
};

struct Add : Elementwise {
  Add() : Elementwise{"AddV2"} {}
};
struct Multiply : Elementwise {
  Multiply() : Elementwise{"Mul"} {}
};

struct Concatenate {
  std::int64_t axis = -1;

  void fields(config::Fields& f) {
    f.field("axis", axis, {.doc = "axis along which the inputs follow each other"});
  }
  Value build(LayerContext& c, std::span<const Value> x) const {
    const auto rank = static_cast<std::int64_t>(c.b.shape(x[0]).rank());
    const std::int64_t at = axis < 0 ? axis + rank : axis;
    if (at < 1 || at >= rank) {
      c.fail(fmt::format("axis {} is not an axis of samples with {} axes", axis, rank - 1));
    }
    std::vector<Value> inputs(x.begin(), x.end());
    inputs.push_back(c.b.scalar(DType::int32, static_cast<double>(at)));
    return c.b.add("ConcatV2", std::move(inputs));
  }
};

constexpr LayerTraits k_several{.min_inputs = 2, .max_inputs = k_any_number};

}  // namespace

const LayerDef k_add = layer_def<Add>("add", "sum of its inputs", k_several);
const LayerDef k_concatenate =
    layer_def<Concatenate>("concatenate", "its inputs one after the other", k_several);
const LayerDef k_multiply = layer_def<Multiply>("multiply", "product of its inputs", k_several);

}  // namespace halfstep::nn

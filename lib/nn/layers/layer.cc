#include "nn/layers/layer.h"

#include <fmt/core.h>

#include <algorithm>

#include "config/blocks.h"
#include "core/philox.h"
#include "graph/ops/ops.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Declares and reads a weight; the regularizer is applied to the stored value.
Value read_weight(LayerContext& c,
                  std::string_view weight_name,
                  DType dtype,
                  DType updated_in,
                  const Shape& shape,
                  const InitializerSpec& initializer,
                  const std::optional<RegularizerSpec>& regularizer) {
  const std::string full = fmt::format("{}/{}", c.name, weight_name);
  if (count(shape.dims()) > k_max_elements) {
    c.fail(fmt::format("its {} would have shape {}: too large", weight_name, to_string(shape)));
  }
  const Value handle = c.b.variable({.name = full,
                                     .type = {dtype, shape},
                                     .role = graph::Role::weight,
                                     .trainable = c.trainable,
                                     .initializer = resolve(initializer, shape),
                                     .layer = c.b.origin().layer});
  const Value read = c.b.read(handle);
  if (c.trainable) c.record.weights.push_back({full, handle, read, updated_in});
  // As in Keras, a frozen weight is not regularized.
  if (regularizer && c.trainable) {
    graph::Origin origin = c.b.origin();
    origin.phase = graph::Phase::loss;
    origin.reason = fmt::format("{}: regularizer on the stored weight", halfstep::name(dtype));
    const graph::ScopeGuard scope(
        c.b, std::move(origin), fmt::format("{}/{}_regularizer", c.name, weight_name));
    c.add_loss(penalty(c.b, *regularizer, read));
  }
  return read;
}

}  // namespace

double count(std::span<const std::int64_t> extents) {
  double product = 1;
  for (const std::int64_t extent : extents) product *= static_cast<double>(extent);
  return product;
}

Value LayerContext::weight(std::string_view weight_name,
                           const Shape& shape,
                           const InitializerSpec& initializer,
                           const std::optional<RegularizerSpec>& regularizer) {
  if (has_masters && trainable && !regularizer) {
    return read_weight(
        *this, weight_name, policy.compute, policy.variable, shape, initializer, regularizer);
  }
  const Value stored = stored_weight(weight_name, shape, initializer, regularizer);
  if (policy.variable == policy.compute) return stored;
  return b.add("Cast", {stored}, {{"DstT", policy.compute}}, fmt::format("{}/Cast", weight_name));
}

Value LayerContext::stored_weight(std::string_view weight_name,
                                  const Shape& shape,
                                  const InitializerSpec& initializer,
                                  const std::optional<RegularizerSpec>& regularizer) {
  const DType dtype = policy.variable;
  return read_weight(*this, weight_name, dtype, dtype, shape, initializer, regularizer);
}

Value LayerContext::float32_weight(std::string_view weight_name,
                                   const Shape& shape,
                                   const InitializerSpec& initializer,
                                   const std::optional<RegularizerSpec>& regularizer) {
  const Explain explain(b, "float32: parameters of a normalization");
  const DType dtype = DType::float32;
  return read_weight(*this, weight_name, dtype, dtype, shape, initializer, regularizer);
}

Value LayerContext::statistic(std::string_view statistic_name,
                              const Shape& shape,
                              const InitializerSpec& initializer) {
  const Explain explain(b, "float32: statistics of a normalization");
  return b.variable({.name = fmt::format("{}/{}", name, statistic_name),
                     .type = {DType::float32, shape},
                     .role = graph::Role::statistic,
                     .trainable = false,
                     .initializer = resolve(initializer, shape),
                     .layer = b.origin().layer});
}

std::pair<Value, Value> LayerContext::state(std::string_view state_name, std::int64_t width) {
  if (!training) {
    const Value rows = b.placeholder(state_name, DType::float32, {share.samples, width});
    return {rows, rows};
  }
  const Value handle = b.variable({.name = fmt::format("{}/{}", name, state_name),
                                   .type = {DType::float32, {share.batch, width}},
                                   .role = graph::Role::state,
                                   .trainable = false,
                                   .initializer = {},
                                   .layer = b.origin().layer});
  Value rows = b.read(handle);
  if (share.samples < share.batch) {
    rows = b.add("Slice", {rows, b.ints({share.first, 0}), b.ints({share.samples, width})});
  }
  return {rows, handle};
}

void LayerContext::set_state(Value handle, Value rows) {
  // A rank without samples computes a copy of another rank's sample.
  if (share.weighted_samples == 0) rows = b.add("ZerosLike", {rows});
  if (share.samples < share.batch) {
    const std::int64_t behind = share.batch - share.first - share.samples;
    rows = b.add("Pad", {rows, b.ints({share.first, behind, 0, 0})});
  }
  record.assignments.push_back({handle, rows, true});
}

std::int64_t LayerContext::stream(int which) const {
  const std::uint64_t key = name_key(name.data(), name.size());
  return static_cast<std::int64_t>(mix(key, static_cast<std::uint64_t>(which)));
}

Value LayerContext::spread(Value of, std::size_t rank) const {
  Shape shape = b.shape(of);
  std::vector<std::int64_t> extents(shape.begin(), shape.end());
  extents.resize(std::max(rank, extents.size()), 1);
  return graph::ops::reshape(b, of, Shape(extents));
}

void initial_state_field(config::Fields& f, std::vector<std::string>& names) {
  f.field(config::k_source_keys[1],
          names,
          {.doc = "Names of the nodes or outputs with the first states, all or none; []: zeros. "
                  "They may also follow the input in `from`."});
}

std::vector<LayerOutput> build_layer(LayerContext& c,
                                     const Layer& layer,
                                     MaskUse use,
                                     std::span<const Value> x) {
  const bool masked = std::ranges::any_of(c.masks, &Value::valid);
  if (masked && use == MaskUse::refused) {
    c.fail("does not support masks: the masked steps of its input would count");
  }
  if (use == MaskUse::passed) c.mask = c.mask_of(0);
  const Value y = layer.build(c, x);
  std::vector<LayerOutput> outputs{{y, c.mask}};
  outputs.insert(outputs.end(), c.further.begin(), c.further.end());
  return outputs;
}

void LayerContext::fail(std::string message) const {
  throw UserError(
      ErrorKind::config, b.origin().where, std::move(message), fmt::format("in layer '{}'", name));
}

}  // namespace halfstep::nn

#include "nn/model.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/ranges.h"

namespace halfstep::nn {
namespace {

using graph::Value;

/// Casts floating inputs to the layer's compute dtype; integers are unchanged.
std::vector<Value> autocast(graph::Builder& b, const std::vector<Value>& x, DType compute) {
  return mapped<Value>(x, [&](const Value& value) {
    return is_floating(b.dtype(value)) ? b.cast(value, compute) : value;
  });
}

/// Keras's activity regularizer: the penalty of the output, per sample.
void regularize_output(LayerContext& c, const RegularizerSpec& spec, Value y) {
  graph::Origin origin = c.b.origin();
  origin.phase = graph::Phase::loss;
  origin.reason = "float32: regularizer on the output";
  const graph::ScopeGuard scope(
      c.b, std::move(origin), fmt::format("{}/activity_regularizer", c.name));
  const Value sum = penalty(c.b, spec, y);
  const auto batch = static_cast<double>(c.b.shape(y)[0]);
  c.add_loss(c.b.add("RealDiv", {sum, c.b.scalar(c.b.dtype(sum), batch)}));
}

}  // namespace

std::vector<std::int64_t> index_limits(const Model& model) {
  std::vector<std::int64_t> limits(model.inputs.size(), 0);
  for (const ModelNode& node : model.nodes) {
    const std::optional<std::int64_t> limit = node.layer->index_limit();
    if (!limit || node.from.at(0).node >= 0) continue;
    std::int64_t& smallest = limits[static_cast<std::size_t>(-1 - node.from[0].node)];
    smallest = smallest == 0 ? *limit : std::min(*limit, smallest);
  }
  return limits;
}

Shape sample_shape(const Model& model) {
  if (model.inputs.size() == 1) return model.inputs[0].shape;
  std::int64_t values = 0;
  for (const Model::Input& input : model.inputs) values += input.shape.elements();
  return {values};
}

Forward build_forward(graph::Builder& b,
                      const Model& model,
                      std::vector<Value> inputs,
                      Value ordinal,
                      std::uint64_t seed,
                      bool training,
                      const BatchShare& share) {
  require(inputs.size() == model.inputs.size(),
          "the model takes {} inputs, got {}",
          model.inputs.size(),
          inputs.size());
  Forward forward;
  const auto output_of = [&](const Source& source) {
    return source.node < 0 ? LayerOutput{inputs[static_cast<std::size_t>(-1 - source.node)]}
                           : forward.nodes[static_cast<std::size_t>(source.node)].at(source.output);
  };
  for (const ModelNode& node : model.nodes) {
    const DType compute = node.precision.policy.compute;
    const graph::ScopeGuard scope(
        b,
        {.layer = node.name,
         .phase = graph::Phase::forward,
         .reason = node.precision.reason,
         .where = node.where},
        b.prefix().empty() ? node.name : fmt::format("{}/{}", b.prefix(), node.name));
    std::vector<Value> x, of_x;
    for (const Source& source : node.from) {
      const LayerOutput from = output_of(source);
      x.push_back(from.value);
      of_x.push_back(from.mask);
    }
    if (!node.layer->index_limit()) x = autocast(b, x, compute);
    LayerContext context{.b = b,
                         .name = node.name,
                         .policy = node.precision.policy,
                         .training = training,
                         .trainable = node.trainable,
                         .ordinal = ordinal,
                         .seed = seed,
                         .record = forward.record,
                         .first_sample = share.first,
                         .share = share,
                         .sync_batch_norm = model.sync_batch_norm,
                         .has_masters = model.shard.divides(),
                         .keeps_states = training || model.carries_states,
                         .masks = of_x};
    std::vector<LayerOutput> all = build_layer(context, *node.layer, node.masks, x);
    for (const auto& [y, mask] : all) {
      const Shape& shape = b.shape(y);
      if (count(shape.dims()) > k_max_elements) {
        context.fail(fmt::format("its output would have shape {}: too large", to_string(shape)));
      }
      require(!is_floating(b.dtype(y)) || b.dtype(y) == compute,
              "layer '{}' gives {}, its policy says {}",
              node.name,
              halfstep::name(b.dtype(y)),
              halfstep::name(compute));
      if (node.activity_regularizer) regularize_output(context, *node.activity_regularizer, y);
    }
    forward.nodes.push_back(std::move(all));
  }
  for (const Source& source : model.outputs) {
    forward.outputs.push_back(output_of(source).value);
    forward.masks.push_back(output_of(source).mask);
  }
  return forward;
}

}  // namespace halfstep::nn

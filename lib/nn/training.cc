
#include <optional>

#include "core/ranges.h"
#include "graph/ops/ops.h"
#include "nn/ranks.h"
#include "nn/step_graph.h"
#include "passes/differentiate.h"

namespace halfstep::nn {
namespace {

using graph::Builder;
using graph::Phase;
using graph::ScopeGuard;
using graph::Value;
using precision::LossScaling;

/// The layer of a variable: its name without the last component.
std::string layer_of(const std::string& variable) {
  const std::size_t slash = variable.rfind('/');
  return slash == std::string::npos ? "" : variable.substr(0, slash);
}

/// True when every element of every gradient is finite.
Value all_finite(Builder& b, const std::vector<Value>& gradients) {
  Value ok;
  for (const Value& g : gradients) {
    std::vector<std::int64_t> axes;
    for (std::size_t i = 0; i < b.shape(g).rank(); ++i)
      axes.push_back(static_cast<std::int64_t>(i));
    const Value finite = b.add("IsFinite", {g});
    const Value all = b.add("All", {finite, b.ints(axes)});
    ok = ok.valid() ? b.add("LogicalAnd", {ok, all}) : all;
  }
  return ok;
}

Value squared_norm(Builder& b, Value g) {
  return graph::ops::reduce(b, "Sum", b.add("Square", {g}));
}

/// g c / max(norm, c): clips the norm of g to c.
Value shorten(Builder& b, Value g, Value norm, double limit) {
  const Value c = b.scalar(DType::float32, limit);
  return b.add("Mul", {g, b.add("RealDiv", {c, b.add("Maximum", {norm, c})})});
}

/// Clips gradients in float32; each is cast back to its dtype, 16 bits under a pure 16-bit policy.
/// `ranks`: the number of ranks that the gradients are sharded over.
void clip(Builder& b,
          const OptimizerSpec& spec,
          const std::vector<Weight>& weights,
          int ranks,
          std::vector<Value>& gradients) {
  Value global;
  std::vector<Value> squares;
  if (spec.global_clipnorm || spec.clipnorm) {
    const ScopeGuard scope(b, step_origin(Phase::clip, "gradients are clipped in float32"), "clip");
    for (const Value& g : gradients) {
      squares.push_back(squared_norm(b, b.cast(g, DType::float32)));
    }
    if (spec.global_clipnorm) squares = {graph::ops::accumulate(b, squares)};
    squares = sum_over_ranks(b, squares, ranks);
    if (spec.global_clipnorm) {
      global = b.add("Sqrt", {squares[0]}, {}, "global_norm");
      b.graph().fetches().emplace_back("global_norm", global);
    }
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const ScopeGuard scope(
        b,
        step_origin(Phase::clip, "gradients are clipped in float32", layer_of(weights[i].name)),
        "clip/" + weights[i].name);
    const DType dtype = b.dtype(gradients[i]);
    Value g = b.cast(gradients[i], DType::float32);
    if (spec.global_clipnorm) {
      g = shorten(b, g, global, *spec.global_clipnorm);
    } else if (spec.clipnorm) {
      g = shorten(b, g, b.add("Sqrt", {squares[i]}), *spec.clipnorm);
    } else if (spec.clipvalue) {
      g = b.add("ClipByValue",
                {g,
                 b.scalar(DType::float32, -*spec.clipvalue),
                 b.scalar(DType::float32, *spec.clipvalue)});
    }
    gradients[i] = b.cast(g, dtype);
  }
}

}  // namespace

void differentiate_loss(StepBuilder& step) {
  Builder& b = step.b;
  const LossScaling& scaling = step.spec.loss_scaling;
  Value target = step.loss;
  if (scaling.mode != LossScaling::Mode::none) {
    const ScopeGuard scope(b, step_origin(Phase::loss, "the loss is scaled in float32"), "");
    if (!step.scale.valid()) {
      step.scale_variables = precision::declare_scale(b, scaling);
      step.scale = b.read(step.scale_variables.scale);
      b.graph().fetches().emplace_back("loss_scale", step.scale);
    }
    target = b.add("Mul", {step.loss, step.scale}, {}, "loss/scaled");
  }

  const auto reads = mapped<Value>(step.record.weights, &Weight::read);
  const ScopeGuard scope(b, step_origin(Phase::backward, ""), "gradients");
  const std::vector<Value> gradients = passes::differentiate(b, target, reads);
  step.weights.clear();
  step.gradients.clear();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].valid()) continue;
    step.weights.push_back(step.record.weights[i]);
    step.gradients.push_back(b.cast(gradients[i], step.weights.back().updated_in));
  }
  if (step.gradients.empty()) {
    throw UserError(ErrorKind::config,
                    {"", 0, 0, "model"},
                    "nothing to train: the loss depends on no trainable weight");
  }
}

void promote_weight_gradients(StepBuilder& step) {
  // A pure 16-bit policy stores 16-bit weights; their gradients are checked in 16 bits.
  if (step.spec.grad_dtype != config::GradDtype::float32) return;
  const ScopeGuard scope(
      step.b, step_origin(Phase::loss, "losses are computed in float32"), "loss");
  for (Value& g : step.gradients) g = passes::promote_weight_gradient(step.b, g);
  step.promoted = true;
}

void accumulate_gradients(StepBuilder& step) {
  if (step.num_microbatches == 1) return;
  Builder& b = step.b;
  const ModelRecord record = step.record;
  const std::vector<Weight> weights = step.weights;
  std::vector<Value> sums = step.gradients;
  std::vector<Value> statistics;
  std::vector<std::pair<std::string, Value>> results;
  const auto accumulate_microbatch = [&] {
    const ScopeGuard scope(
        b,
        step_origin(Phase::backward, "float32: gradients of microbatches are accumulated"),
        "accumulate");
    const auto add = [&](Value& sum, Value x) {
      sum = b.add("AddV2", {b.cast(sum, DType::float32), b.cast(x, DType::float32)});
      // The lists of an automatic rewrite would let it add in 16 bits.
      b.graph().node(sum.node).preserve = true;
    };
    const bool first = results.empty();
    step.previous.clear();
    for (std::size_t i = 0; i < sums.size() && !first; ++i) {
      add(sums[i], step.gradients[i]);
      step.previous.push_back(sums[i].node);
    }
    b.origin().phase = Phase::metrics;
    const double weight =
        static_cast<double>(step.microbatch.samples) / static_cast<double>(step.share.samples);
    for (std::size_t i = 0; i < step.record.assignments.size(); ++i) {
      auto [handle, value, rows] = step.record.assignments[i];
      const DType dtype = b.dtype(value);
      if (is_floating(dtype) && !rows) value = b.add("Mul", {value, b.scalar(dtype, weight)});
      if (first) {
        statistics.push_back(value);
      } else if (is_floating(dtype)) {
        statistics[i] = b.add("AddV2", {statistics[i], value});
      }
    }
    if (first) results = b.graph().fetches();
    for (auto& [name, value] : results) {
      if (!first && is_sum(name)) add(value, b.graph().fetch(name));
    }
    b.graph().fetches().clear();
  };
  accumulate_microbatch();
  for (std::int64_t i = 1; i < step.num_microbatches; ++i) {
    step.microbatch = step.share.micro_batch(i, step.num_microbatches);
    build_loss(step);
    differentiate_loss(step);
    if (step.promoted) promote_weight_gradients(step);
    accumulate_microbatch();
  }
  b.graph().fetches() = std::move(results);
  step.record = record;
  step.weights = weights;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    step.gradients[i] = b.cast(sums[i], b.dtype(step.gradients[i]));
  }
  for (std::size_t i = 0; i < statistics.size(); ++i) {
    step.record.assignments[i].value = statistics[i];
  }
}

void append_updates(StepBuilder& step) {
  Builder& b = step.b;
  const StepSpec& spec = step.spec;
  const LossScaling& scaling = spec.loss_scaling;
  const bool scaled = scaling.mode != LossScaling::Mode::none;
  const bool dynamic = scaling.mode == LossScaling::Mode::dynamic;
  // A trace has no sums over ranks, and does no updates.
  const bool divides = spec.model.shard.divides() && step.share.ranks > 1;
  const bool traces = spec.model.shard.divides() && step.share.ranks == 1;
  const bool guarded = dynamic || spec.on_nonfinite != config::OnNonfinite::apply;
  const std::vector<Weight>& weights = step.weights;
  const std::vector<Value>& raw = step.gradients;
  std::vector<Value> gradients = raw;
  if (scaled) {
    const ScopeGuard scope(
        b, step_origin(Phase::unscale, "gradients are unscaled in float32"), "unscale");
    const Value inverse = b.add("Reciprocal", {step.scale});
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const ScopeGuard inner(
          b,
          step_origin(
              Phase::unscale, "gradients are unscaled in float32", layer_of(weights[i].name)),
          "unscale/" + weights[i].name);
      const Value factor = b.cast(inverse, b.dtype(raw[i]));
      gradients[i] = b.add("Mul", {raw[i], factor}, {}, "gradient");
    }
  }

  Value ok;
  if (guarded) {
    const ScopeGuard scope(b, step_origin(Phase::unscale, "the finite check"), "finite_check");
    ok = all_finite(b, scaling.check == config::ScaleCheck::scaled ? raw : gradients);
    if (divides) {
      const Value bad = b.add("Sub", {b.scalar(DType::float32, 1), b.cast(ok, DType::float32)});
      ok = b.add("Less",
                 {sum_over_ranks(b, {bad}, step.share.ranks)[0], b.scalar(DType::float32, 0.5)});
    }
    b.graph().fetches().emplace_back("ok", ok);
  }

  clip(b, spec.optimizer.spec, weights, divides ? step.share.ranks : 1, gradients);

  const ScopeGuard scope(
      b, step_origin(Phase::update, "optimizers compute in float32"), "optimizer");
  const Value iterations = b.variable({std::string(k_iterations_variable),
                                       {DType::int64, {}},
                                       graph::Role::counter,
                                       false,
                                       {},
                                       ""});
  const Value count = b.read(iterations);
  // The host reads the learning rate even in a step that is skipped.
  b.origin().phase = Phase::clip;
  const Value rate = b.add("LearningRate", {count}, spec.learning_rate, "learning_rate");
  b.graph().fetches().emplace_back("learning_rate", rate);
  b.origin().phase = Phase::update;
  const Value number = b.add("AddV2", {b.cast(count, DType::float32), b.scalar(DType::float32, 1)});
  std::optional<WeightGather> gather;
  if (divides) gather.emplace(step);
  for (std::size_t i = 0; i < weights.size() && !traces; ++i) {
    const ScopeGuard inner(
        b,
        step_origin(Phase::update, "optimizers compute in float32", layer_of(weights[i].name)),
        "optimizer/" + weights[i].name);
    const DType dtype = b.dtype(weights[i].read);
    OptimizerContext context{b,
                             weights[i],
                             gradients[i],
                             b.cast(rate, dtype),
                             b.cast(number, dtype),
                             ok,
                             spec.optimizer.spec.weight_decay.value_or(0)};
    spec.optimizer.optimizer->update(context);
    if (gather) gather->add(b, weights[i]);
  }
  if (gather) gather->finish(b);
  for (const Assignment& assignment : step.record.assignments) {
    std::vector<Value> inputs{assignment.handle, assignment.value};
    if (ok.valid()) inputs.push_back(ok);
    b.add_node("AssignVariableOp", std::move(inputs));
  }
  std::vector<Value> inputs{iterations, b.scalar(DType::int64, 1)};
  if (ok.valid() && scaling.step_counter == config::StepCounter::applied) inputs.push_back(ok);
  b.add_node("AssignAddVariableOp", std::move(inputs));
  if (dynamic) precision::update_scale(b, scaling, step.scale_variables, ok);
}

}  // namespace halfstep::nn

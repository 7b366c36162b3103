#include "plan/prepare_graph.h"

#include <fmt/format.h>

#include "config/warning_codes.h"
#include "graph/ops/ops.h"
#include "passes/lowering.h"
#include "precision/tf_environment.h"

namespace halfstep::plan {
namespace {

using precision::List;

precision::Level level(config::RewriteLevel level) {
  switch (level) {
    case config::RewriteLevel::treat_infer_as_deny:
      return precision::Level::treat_infer_as_deny;
    case config::RewriteLevel::tensor_cores_only:
      return precision::Level::tensor_cores_only;
    case config::RewriteLevel::unsafe_force_all:
      return precision::Level::unsafe_force_all;
  }
  return precision::Level::standard;
}

precision::ListEdits edits(const config::ListEdits& spec, const Where& where) {
  precision::ListEdits edits;
  const auto note = [&](List list, const config::ListEdit& edit) {
    const auto index = static_cast<std::size_t>(list);
    for (const std::string& op : edit.add) edits.add[index].push_back({op, where});
    for (const std::string& op : edit.remove) edits.remove[index].push_back({op, where});
  };
  note(List::allow, spec.allow);
  note(List::infer, spec.infer);
  note(List::deny, spec.deny);
  note(List::clear, spec.clear);
  return edits;
}

std::vector<std::string> describe(const std::vector<precision::ListEdits>& rounds) {
  std::vector<std::string> texts;
  for (const precision::ListEdits& round : rounds) {
    for (List list : {List::allow, List::infer, List::deny, List::clear}) {
      const auto index = static_cast<std::size_t>(list);
      for (const auto& item : round.add[index])
        texts.push_back(fmt::format("{} +{}", name(list), item.op));
      for (const auto& item : round.remove[index])
        texts.push_back(fmt::format("{} -{}", name(list), item.op));
    }
  }
  return texts;
}

/// The decisions about the ops of `original`; their reasons are stored in the nodes of the
/// rewritten graph.
std::vector<RewriteDecision> decisions(const graph::Graph& original,
                                       precision::RewriteResult& result,
                                       const precision::OpLists& lists) {
  std::vector<RewriteDecision> decisions;
  for (const precision::PaintedVertex& vertex : result.paint) {
    const graph::Node& node = original.node(vertex.node);
    RewriteDecision d;
    d.node = node.name;
    d.op = node.listed_op();
    d.attr = vertex.attr;
    const std::optional<List> list = lists.of(node.listed_op());
    d.list = list ? std::string(name(*list)) : "";
    d.paint = name(vertex.paint);
    d.step = name(vertex.rule);
    d.reason = vertex.reason;
    if (vertex.cause >= 0) {
      const auto cause = static_cast<std::size_t>(vertex.cause);
      d.cause = original.node(result.paint[cause].node).name;
    }
    const int moved = result.nodes[static_cast<std::size_t>(vertex.node)];
    if (vertex.attr == "T" || result.graph.node(moved).origin.reason.empty()) {
      result.graph.node(moved).origin.reason = fmt::format("{}: {}", d.step, d.reason);
    }
    decisions.push_back(std::move(d));
  }
  for (const precision::InsertedCast& cast : result.casts) {
    result.graph.node(cast.node).origin.reason = "cast between 16-bit and float32 ops";
  }
  return decisions;
}

void add(std::vector<Problem>& problems, std::vector<config::Warning>& warnings) {
  for (Problem& problem : problems) {
    std::string message = std::move(problem.message);
    if (!problem.hint.empty()) message += fmt::format(" ({})", problem.hint);
    warnings.push_back(
        config::warning(config::k_idle_variable, std::move(problem.where), std::move(message)));
  }
}

/// TensorFlow's variables are applied after the config's edits; a level in the config has
/// precedence.
void add_tensorflow_variables(const config::PrecisionSpec& spec,
                              precision::RewriteOptions& options,
                              std::vector<config::Warning>& warnings) {
  const precision::Level configured = options.level;
  std::vector<Problem> problems = precision::apply_tensorflow_variables(
      [&](const std::string& name) {
        const auto it = spec.tensorflow_variables.find(name);
        return it == spec.tensorflow_variables.end() ? std::nullopt : std::optional(it->second);
      },
      options);
  if (spec.level) options.level = configured;
  add(problems, warnings);
}

/// Errors: UserError(config) at `where` for an op that does not allow the dtype set by the rewrite.
void check_converted(const graph::Graph& graph,
                     DType target,
                     const Where& where,
                     const std::string& hint) {
  for (int id = 0; id < graph.size(); ++id) {
    const graph::Node& node = graph.node(id);
    for (const graph::TypeAttr& type : node.def->types) {
      const graph::AttrValue* value = node.attrs.find(type.name);
      const auto* dtype = value == nullptr ? nullptr : std::get_if<DType>(value);
      if (dtype == nullptr || *dtype != target || type.allowed.contains(target)) continue;
      throw UserError(ErrorKind::config,
                      where,
                      fmt::format("{} cannot be converted: its {} may not be {} (in '{}')",
                                  node.op,
                                  type.name,
                                  halfstep::name(target),
                                  node.name),
                      hint);
    }
  }
}

}  // namespace

precision::RewriteOptions rewrite_options(const config::PrecisionSpec& spec, const Where& where) {
  precision::RewriteOptions options =
      precision::training_options(spec.target.value_or(DType::bfloat16));
  if (spec.level) options.level = level(*spec.level);
  options.rules = spec.rewrite_rules;
  options.edits = {edits(spec.lists, where)};
  return options;
}

Prepared prepare_graph(graph::Graph graph, const config::RunSpec& spec) {
  Prepared prepared;
  prepared.rewrite.nodes_total = graph.size();
  if (spec.precision.rewrite == config::Rewrite::none) {
    prepared.graph = std::move(graph);
    return prepared;
  }
  const Where where = spec.where("precision.lists");
  const bool forced = spec.precision.level == config::RewriteLevel::unsafe_force_all;
  const std::string hint = forced ? "this level converts ops without a 16-bit form too" : "";
  const Where rule = forced ? spec.where("precision.level") : where;
  precision::RewriteOptions options = rewrite_options(spec.precision, where);
  add_tensorflow_variables(spec.precision, options, prepared.warnings);
  precision::UnknownEdits unknown = precision::unknown_ops(options.edits, graph::op_table());
  if (!unknown.errors.empty()) throw UserError(ErrorKind::config, unknown.errors);
  add(unknown.warnings, prepared.warnings);
  // The rewrite sees the pruned graph, as in TensorFlow, which prunes first.
  graph = passes::prune(graph);
  prepared.rewrite.nodes_total = graph.size();

  precision::RewriteResult result = precision::rewrite(graph, graph::op_table(), options);
  if (result.status == precision::RewriteStatus::failed) {
    throw UserError(ErrorKind::config, rule, result.message, hint);
  }
  check_converted(result.graph, options.target(), rule, hint);
  const precision::OpLists lists =
      precision::make_lists(options.mode,
                            {options.device.cuda_version, options.device.cudnn_version, false},
                            options.level,
                            options.edits);
  prepared.rewrite.decisions = decisions(graph, result, lists);
  prepared.graph = std::move(result.graph);
  prepared.rewrite.mode = name(options.mode);
  prepared.rewrite.target = halfstep::name(options.target());
  prepared.rewrite.status = name(result.status);
  prepared.rewrite.message = result.message;
  prepared.rewrite.infer_follows = options.infer_follows();
  prepared.rewrite.nodes_converted = result.nodes_converted;
  prepared.rewrite.casts_inserted = static_cast<std::int64_t>(result.casts.size());
  prepared.rewrite.list_edits = describe(options.edits);
  return prepared;
}

void RewriteDecision::fields(Fields& f) {
  f("node", node, "node of the graph");
  f("op", op, "its op");
  f("attr", attr, "its type attribute");
  f.text_or_null("list", list, "allow, infer, deny or clear; null on none");
  f("paint", paint, "allow, deny or none");
  f("step", step, "of the pass that decided");
  f("reason", reason, "in words");
  f.text_or_null("cause", cause, "node whose list decided the dtype, or that prevents 16 bits");
}

void RewriteSummary::fields(Fields& f) {
  f("mode", mode, "none, cuda, bf16, cpu or fp16_cpu");
  f.text_or_null("target", target, "it converts to; null without a rewrite");
  f("nodes_total", nodes_total, "nodes of the graph");
  f("nodes_converted", nodes_converted, "nodes that changed dtype");
  f("casts_inserted", casts_inserted, "casts the rewrite added");
  f("list_edits", list_edits, "edits of the op lists: allow +Softmax");
  f("decisions",
    decisions,
    {.doc = "why each op was or was not converted",
     .each = "one op the automatic rewrite looked at"});
}

}  // namespace halfstep::plan

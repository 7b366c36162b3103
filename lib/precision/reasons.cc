#include "precision/reasons.h"

#include <fmt/format.h>

namespace halfstep::precision {
namespace {

using graph::Graph;
using graph::Node;

/// Why no pass painted a vertex of a processed node.
std::string unpainted_reason(const Node& node,
                             const PaintedVertex& vertex,
                             const std::string& other,
                             const ReasonFacts& facts,
                             bool infer_follows,
                             DType target) {
  if (!facts.list)
    return fmt::format("`{}` is on no list, so it keeps its dtype", node.listed_op());
  if (!facts.float32) return fmt::format("{} is not float32", vertex.attr);
  if (!facts.admitted) {
    return fmt::format("`{}` does not take {} for {}", node.listed_op(), name(target), vertex.attr);
  }
  if (facts.ref_read) return "it reads a ref variable, which must stay as it is";
  if (!facts.supported) return fmt::format("`{}` has no {} kernel", node.listed_op(), name(target));
  if (*facts.list == List::clear) return "no converted op reaches it through clear ops";
  if (!other.empty()) return fmt::format("its input is denied: {}", other);
  if (infer_follows) return "no converted op stands right before it";
  if (facts.after_allow) return "a converted op stands before it, but none after it";
  return "it does not lie between two allow ops";
}

}  // namespace

std::string describe(const Node& node) {
  if (node.origin.layer.empty()) return fmt::format("`{}` ({})", node.listed_op(), node.name);
  return fmt::format("`{}` in {}'s {} pass ({})",
                     node.listed_op(),
                     node.origin.layer,
                     name(node.origin.phase),
                     node.name);
}

std::string reason(const Graph& graph,
                   const PaintedVertex& vertex,
                   const PaintedVertex* cause,
                   const ReasonFacts& facts,
                   bool infer_follows,
                   DType target) {
  const Node& node = graph.node(vertex.node);
  const std::string other = cause == nullptr ? "" : describe(graph.node(cause->node));
  switch (vertex.step) {
    case Step::none:
      return unpainted_reason(node, vertex, other, facts, infer_follows, target);
    case Step::preserved:
      return "its node is to be preserved";
    case Step::unprocessed:
      return "its node is not on a device of the rewrite";
    case Step::allow_seed:
      if (!facts.float32)
        return fmt::format("`{}` is on the allow list, but not float32", node.listed_op());
      return fmt::format("`{}` is on the allow list", node.listed_op());
    case Step::forced:
      return "level unsafe_force_all converts it";
    case Step::deny_spread:
      if (cause == nullptr) return fmt::format("`{}` is on the deny list", node.listed_op());
      return fmt::format("{} denied it", other);
    case Step::list_cluster:
      if (!facts.cluster.empty()) return facts.cluster;
      return fmt::format("it shares a tensor list with {}", other);
    case Step::between_allows:
      return fmt::format("it lies between allow ops, before {}", other);
    case Step::infer_after_allow:
      return fmt::format("it follows {}, which is converted", other);
    case Step::clear_spread:
      return fmt::format("`{}` does not care and is joined to {}", node.listed_op(), other);
    case Step::unpainted:
      return fmt::format(
          "`{}` does not take {} for {}", node.listed_op(), name(target), vertex.attr);
    case Step::loop:
      if (vertex.paint == Paint::allow) return "the Merge that it feeds is converted";
      return fmt::format("{} of the same loop is not converted", other);
    case Step::existing_cast:
      return "only converted ops read this cast";
  }
  return {};
}

}  // namespace halfstep::precision

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
                             const VertexTraits& traits,
                             bool infer_follows,
                             DType target) {
  if (!traits.list)
    return fmt::format("`{}` is on no list, so it keeps its dtype", node.listed_op());
  if (!traits.float32) return fmt::format("{} is not float32", vertex.attr);
  if (!traits.admitted) {
    return fmt::format(
        "`{}` does not allow {} for {}", node.listed_op(), name(target), vertex.attr);
  }
  if (traits.ref_read) return "it reads a ref variable, which must stay as it is";
  if (!traits.supported)
    return fmt::format("`{}` has no {} kernel", node.listed_op(), name(target));
  if (*traits.list == List::clear) return "no converted op reaches it through clear ops";
  if (!other.empty()) return fmt::format("its input is denied: {}", other);
  if (infer_follows) return "no converted op is right before it";
  if (traits.after_allow) return "a converted op precedes it, but none follows";
  return "it is not between two allow ops";
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
                   const VertexTraits& traits,
                   bool infer_follows,
                   DType target) {
  const Node& node = graph.node(vertex.node);
  const std::string other = cause == nullptr ? "" : describe(graph.node(cause->node));
  switch (vertex.rule) {
    case Rule::none:
      return unpainted_reason(node, vertex, other, traits, infer_follows, target);
    case Rule::preserved:
      return "its node is to be preserved";
    case Rule::unprocessed:
      return "its node is not on a device of the rewrite";
    case Rule::allow_seed:
      if (!traits.float32)
        return fmt::format("`{}` is on the allow list, but not float32", node.listed_op());
      return fmt::format("`{}` is on the allow list", node.listed_op());
    case Rule::forced:
      return "level unsafe_force_all converts it";
    case Rule::deny_spread:
      if (cause == nullptr) return fmt::format("`{}` is on the deny list", node.listed_op());
      return fmt::format("{} denied it", other);
    case Rule::list_cluster:
      if (!traits.cluster.empty()) return traits.cluster;
      return fmt::format("it shares a tensor list with {}", other);
    case Rule::between_allows:
      return fmt::format("it is between allow ops, before {}", other);
    case Rule::infer_after_allow:
      return fmt::format("it follows {}, which is converted", other);
    case Rule::clear_spread:
      return fmt::format("`{}` is on the clear list and adjacent to {}", node.listed_op(), other);
    case Rule::unpainted:
      return fmt::format(
          "`{}` does not allow {} for {}", node.listed_op(), name(target), vertex.attr);
    case Rule::loop:
      if (vertex.paint == Paint::allow) return "the Merge that it feeds is converted";
      return fmt::format("{} of the same loop is not converted", other);
    case Rule::existing_cast:
      return "only converted ops read this cast";
  }
  return {};
}

}  // namespace halfstep::precision

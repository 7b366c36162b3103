#pragma once
// Painting, the analysis of the rewrite: which type vertices become 16-bit, which must not, and
// why.

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "precision/lists.h"
#include "precision/vertices.h"

namespace halfstep::precision {

enum class Paint { none, allow, deny };

/// The rule that determined the paint of a vertex.
enum class Rule {
  none,               ///< no rule reached it
  preserved,          ///< its node is a fetch, a feed or marked to be kept
  unprocessed,        ///< its node is on another device
  allow_seed,         ///< its op is on the allow list
  forced,             ///< level unsafe_force_all
  deny_spread,        ///< its op is on the deny list, or reached from one through infer ops
  list_cluster,       ///< another vertex of its tensor list determined it
  between_allows,     ///< it is on a path between two converted ops
  infer_after_allow,  ///< it follows a converted op (RewriteOptions::infer_follows)
  clear_spread,       ///< its op is on the clear list and adjacent to a converted op
  unpainted,          ///< allowed, but its type cannot be 16-bit
  loop,               ///< NextIteration and Merge of one loop must agree
  existing_cast,      ///< a cast all of whose readers are converted
};

std::span<const std::string_view> names_of(Paint);
std::span<const std::string_view> names_of(Rule);
std::string_view name(Paint paint);
std::string_view name(Rule rule);

/// The result for one vertex.
struct PaintedVertex {
  int node = -1;     ///< of the graph before the rewrite
  std::string attr;  ///< label of the vertex: "T", "T[2]", "bool"
  Paint paint = Paint::none;
  Rule rule = Rule::none;
  int cause = -1;      ///< the vertex that determined the paint, or prevents conversion
  std::string reason;  ///< explanation for users
};

/// The inputs of painting.
struct PaintInputs {
  const graph::Graph& graph;
  TypeGraph& types;  ///< gains the edges of tensor lists
  const OpLists& lists;
  const std::vector<bool>& processed;  ///< by node
  const std::set<std::string>& functions;
  DType target = DType::float16;
  bool force_all = false;
  bool infer_follows = false;  ///< whether the pass infer_after_allow runs
  /// Whether the node's device has a kernel for the op with this dtype.
  std::function<bool(std::string_view op, DType dtype)> supports = {};
};

struct PaintResult {
  std::vector<bool> allow;              ///< by vertex
  std::vector<PaintedVertex> vertices;  ///< by vertex
  bool nothing_to_do = false;           ///< no op is on the allow list
};

/// Applies all rules in TensorFlow's order. Errors: RewriteFailure when NextIteration feeds
/// anything but Merge.
PaintResult paint(const PaintInputs& job);

/// True for an Identity of a ref variable, and for an Enter of such an Identity.
bool reads_ref_variable(const graph::Graph& graph, const graph::Node& node);

}  // namespace halfstep::precision

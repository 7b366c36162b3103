#pragma once
// The vertices that the rewrite paints: the type attributes of nodes.

#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace halfstep::precision {

/// Aborts the rewrite; the graph remains unchanged.
class RewriteFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One type attribute of one node, one element of a list(type) attribute, or one dtype that the
/// op's signature fixes for ports (paint propagates through it, but its dtype never changes).
struct Vertex {
  int node = -1;
  std::string attr;  ///< empty when fixed
  int index = -1;    ///< element of a list attribute
  std::optional<DType> fixed;
  DType dtype = DType::float32;

  /// "T", "T[2]", "bool".
  std::string label() const;
};

/// Vertices in node order and, within a node, in the order of its op's attributes, fixed dtypes
/// last. An edge joins the vertex of an output port to the vertex of each input port that reads it;
/// control inputs make no edges, and no edge is within a node.
struct TypeGraph {
  std::vector<Vertex> vertices;
  std::vector<std::vector<int>> fanin;  ///< sorted, each vertex once
  std::vector<std::vector<int>> fanout;
  std::vector<std::vector<int>> inputs;   ///< per node: the vertex of each data input
  std::vector<std::vector<int>> outputs;  ///< per node: the vertex of each output
  std::vector<int> first;                 ///< per node: its first vertex; one more at the end

  int size() const { return static_cast<int>(vertices.size()); }
  const Vertex& vertex(int id) const { return vertices[static_cast<std::size_t>(id)]; }
  /// The vertex of a scalar type attribute, or -1.
  int find(int node, std::string_view attr) const;
  /// The vertex of a fixed dtype, or -1.
  int find(int node, DType fixed) const;
  void connect(int from, int to);
};

/// Errors: RewriteFailure for an op that is neither in the op table nor in `functions`, and for a
/// node whose number of inputs does not fit its op.
TypeGraph build_type_graph(const graph::Graph& graph, const std::set<std::string>& functions);

/// Whether the op's definition allows `dtype` for a vertex. Statistics and parameters of batch
/// normalization (attribute U) stay in float32 whatever the op allows.
bool admits(const graph::Node& node, const Vertex& vertex, DType dtype);

}  // namespace halfstep::precision

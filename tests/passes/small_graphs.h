#pragma once
// Small graphs for tests of passes, compared as text and node by node.

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace halfstep::test {

/// Reads and verifies an executable graph.
graph::Graph read_graph(std::string_view text);

/// The nodes as `name = Op(inputs)` lines without attributes, then `result name value` lines.
std::string outline(const graph::Graph& graph);

/// The nodes of an op, in order, and how many there are.
std::vector<const graph::Node*> nodes(const graph::Graph& graph, std::string_view op);
std::size_t count(const graph::Graph& graph, std::string_view op);

/// Answers of a machine that runs every node, and none.
inline bool always(const graph::Graph&, const graph::Node&) { return true; }
inline bool never(const graph::Graph&, const graph::Node&) { return false; }

}  // namespace halfstep::test

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

/// Answers of a backend that has a kernel for every op, and for none.
inline bool always(const graph::OpInstance&) { return true; }
inline bool never(const graph::OpInstance&) { return false; }

}  // namespace halfstep::test

#pragma once
// Graphs as text, for passes that are told by what they leave.

#include <string>
#include <string_view>

#include "graph/graph.h"

namespace halfstep::test {

/// Reads and verifies an executable graph.
graph::Graph read_graph(std::string_view text);

/// The nodes as `name = Op(inputs)` lines without attributes, then `result name value` lines.
std::string outline(const graph::Graph& graph);

}  // namespace halfstep::test

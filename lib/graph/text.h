#pragma once
// The text form of a graph: one node a line, in the order of the graph.
//
//   input  = Const @CPU                       # name = Op(inputs) {attribute: value, ...} @device
//   allow1 = MatMul(input, w)                 # `n` is output 0 of node n, `n:1` its output 1
//   fetch  = Identity(allow1, ^input)         # `^n`: n runs before this node
//   preserve fetch, allow1                    # fetches, feeds, keep-ops
//   no_kernel Tanh float16                    # this op has no kernel for this dtype
//   function Func1                            # an op of the graph's own function library
//   variable dense/kernel {dtype: float32, shape: [4, 2], role: weight, ...}
//   result loss mean:0                        # a named result of an executable graph
//
// A name may be used before its line. A type attribute that is not given is taken from the input
// it types, else from the op's default, else it is float32; a count attribute from the number of
// inputs or from the outputs in use. Executable graphs carry shapes as `_shape` (one list per
// output; scalars need none), the layer as `_layer` and the phase as `_phase`; reasons and config
// positions are not part of the text.

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "graph/graph.h"

namespace halfstep::graph {

/// A graph with the declarations of its text that are no nodes. Every node's origin.where is its
/// line.
struct ParsedGraph {
  Graph graph;
  std::set<std::pair<std::string, DType>> no_kernel;
  std::set<std::string> functions;
};

/// Parses the text form. Nodes whose op is not in `ops` get no def; their outputs take the dtypes
/// that their consumers require. Errors: UserError(config) with all problems found: syntax,
/// undefined and duplicate names, ports and attributes that an op does not have, cycles without a
/// loop op.
ParsedGraph parse_graph(std::string_view text, std::string_view file_name, const OpTable& ops);

/// The text form; parse_graph() of it gives an equal graph.
std::string print_graph(const Graph& graph);
std::string print_graph(const ParsedGraph& parsed);

}  // namespace halfstep::graph

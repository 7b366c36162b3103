#include "train/prepare_graph.h"

namespace halfstep::train {

Prepared prepare_graph(graph::Graph graph, const config::RunSpec&, const backend::Backend&) {
  return {std::move(graph)};
}

}  // namespace halfstep::train

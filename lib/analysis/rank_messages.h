#pragma once
// The messages between the ranks of a run in a training step, from its graph.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/fields.h"
#include "graph/graph.h"

namespace halfstep::analysis {

/// An exchange that a node begins.
struct RankMessage {
  std::string name;                 ///< of the node
  std::string phase;                ///< of the step
  std::string exchange;             ///< "AllReduce", "ReduceScatter", "AllGather"
  std::string dtype;                ///< in which it travels
  std::int64_t numbers = 0;         ///< of all ranks together, padding included
  double sent_bytes = 0;            ///< by a rank, to others
  std::string reason;               ///< of the node
  std::vector<std::string> layers;  ///< whose values travel, in order
  bool of_layer = false;            ///< whether a layer of the forward pass requires it
  void fields(Fields& f);
};

struct RankMessages {
  std::int64_t ranks = 1;
  std::vector<RankMessage> messages;  ///< in the order in which they begin, on all ranks
  double sent_bytes = 0;              ///< of all of them
  void fields(Fields& f);
};

/// Nothing for a graph without messages. `on_gpus`: carried by NCCL.
std::optional<RankMessages> rank_messages(const graph::Graph& step, bool on_gpus);

}  // namespace halfstep::analysis

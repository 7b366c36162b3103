#pragma once
// Exchanges between the ranks of a run besides those of its steps: requests to stop or to save, and
// the origin of values that are not finite. Ranks take part in the same order, each on the thread
// that trains.

#include <functional>
#include <optional>

#include "comm/communicator.h"
#include "graph/graph.h"
#include "train/interrupt.h"
#include "train/scale_events.h"

namespace halfstep::train {

/// A source of requests that gives all ranks the strongest one of any; `own` are those of this rank
/// and may be empty. All ranks call it after the same steps. They exchange requests about ten times
/// a second, at a step that they have agreed on before, and then all get the strongest; such a call
/// blocks until all ranks have made it. `ranks` must outlive the result. Errors of the result:
/// comm::RankLost.
std::function<Request()> agreed_requests(std::function<Request()> own, comm::Communicator& ranks);

/// The non-finite tensor of the lowest rank that found one, on all ranks; nothing where none did.
/// All ranks call it, each with its own. Blocking. Errors: comm::RankLost.
std::optional<FirstNonfinite> first_of_ranks(const std::optional<FirstNonfinite>& own,
                                             comm::Communicator& ranks);

/// The bytes that a rank sends to others for the exchange that a node begins; 0 for other nodes.
/// `rings`: by NCCL, as a ring does.
double sent_bytes(const graph::Node& node, bool rings);

}  // namespace halfstep::train

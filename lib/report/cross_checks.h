#pragma once
// What must hold between the members of a report and no schema can say.

#include <vector>

#include "report/schema.h"

namespace halfstep::report {

/// For every kind: the exit code fits the status, and `nonfinite` names paths that exist and are
/// null.
void check_common(const Json& report, std::vector<Violation>& found);

/// Columns of the history have one length, counts add up, times are in order.
void check_train(const Json& report, std::vector<Violation>& found);

/// The classes' counts add up to the samples.
void check_eval(const Json& report, std::vector<Violation>& found);

/// Every policy's counts, differences and verdicts are those of the runs and pairs listed; gates
/// decide the exit code.
void check_compare(const Json& report, std::vector<Violation>& found);

/// What stands at the top is the first policy's; repeats and launches add up.
void check_bench(const Json& report, std::vector<Violation>& found);

/// The shares are those of the ops listed.
void check_explain(const Json& report, std::vector<Violation>& found);

/// Casts and paint speak of nodes that are there; a graph that was left alone has no casts.
void check_graph_rewrite(const Json& report, std::vector<Violation>& found);

}  // namespace halfstep::report

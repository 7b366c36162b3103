#pragma once
// The compiler's passes in one table: from the loss of a training step to ops that kernels run.

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "backend/backend.h"
#include "graph/graph.h"
#include "nn/step_graph.h"
#include "plan/prepare_graph.h"

namespace halfstep::passes {
struct Target;
}

namespace halfstep::plan {

/// training: appends the rest of a training step to its loss; precision: chooses dtypes over the
/// whole graph; lowering: replaces ops of the model by ops that the backend's kernels run faster.
enum class PassStage { training, precision, lowering };

std::string_view name(PassStage stage);

/// An entry of the table. Each stage has its own function type.
struct Pass {
  using Training = void (*)(nn::StepBuilder& step);
  using Precision = Prepared (*)(graph::Graph graph, const config::RunSpec& spec);
  using Lowering = graph::Graph (*)(const graph::Graph& graph, const passes::Target& target);

  std::string_view name;
  std::variant<Training, Precision, Lowering> run;
  std::string_view reason;  ///< for the pass, and for its position
  /// Removes values of the graph or keeps them in packed form only, so that Plan::trace() cannot
  /// show them.
  bool hides_values = false;
  /// The weights after a step have the same bits with and without the pass.
  bool exact = true;
  std::string_view required = {};  ///< why no step can do without it; "" when it may be skipped

  PassStage stage() const { return static_cast<PassStage>(run.index()); }
};

/// In the order in which they run.
std::span<const Pass> passes();

/// The pass of that name. Errors: UserError(config) at `where`, with the nearest name and the
/// command that lists all.
const Pass& pass_named(std::string_view name, const Where& where);

/// The result of one pass; passed to PassOptions::observer right after it.
struct PassRun {
  const Pass& pass;
  int nodes_before = 0;
  const graph::Graph& graph;  ///< after the pass
  bool changed = false;
  bool skipped = false;
};

struct PassOptions {
  std::set<std::string, std::less<>> skip;  ///< names of passes to skip
  std::function<void(const PassRun&)> observer = {};
};

/// Checks names to skip. Errors: UserError(config) at `where` for unknown and required passes.
void check_skippable(const std::set<std::string, std::less<>>& names, const Where& where);

/// The passes of the stages training (for Purpose::train) and precision, on a new forward pass.
/// Errors: UserError(config) for shapes that do not fit, a model that cannot be trained and list
/// edits that cannot be applied.
Prepared build_step(const nn::StepSpec& step_spec,
                    const nn::DataShape& data,
                    const BatchShare& batch,
                    nn::Purpose purpose,
                    const config::RunSpec& spec,
                    const PassOptions& options = {});

/// Options of the stage lowering.
struct Lowering {
  /// Whether passes that hide values run. Without them Plan::trace() shows each value of the graph
  /// except those of the finite check.
  bool hides_values = true;
  /// Partial products per multiplication of float16 values on matrix units: 3, or 4 for exact
  /// results.
  std::int64_t float16_products = 3;
  PassOptions passes = {};
};

struct Lowered {
  graph::Graph graph;
  bool hides_values = false;  ///< whether a pass that hides values changed the graph
};

/// The passes of the stage lowering. `backend` may be one that only names kernels.
/// Errors: InternalError when a pass breaks the graph.
Lowered lower(const graph::Graph& graph,
              const backend::Backend& backend,
              const Lowering& lowering = {});

}  // namespace halfstep::plan

#pragma once
// `explain --passes`: the compiler's passes on the training step of a config.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/fields.h"
#include "plan/pipeline.h"

namespace halfstep::report {

/// A pass that ran on the step; node counts are of the full step graph.
struct PassBlock {
  std::string name, stage, outcome;
  std::int64_t nodes_before = 0, nodes_after = 0;
  bool hides_values = false, exact = true, required = false;
  std::string reason;
  std::optional<std::string> graph;  ///< text form after the pass, with --dump-after
  void fields(Fields& f);
};

struct PassesReport {
  static constexpr std::string_view k_kind = "passes",
                                    k_doc = "the compiler's passes on a training step";
  std::vector<PassBlock> passes;
  void fields(Fields& f);
};

/// The row of a pass that ran, without the text of its graph.
PassBlock pass_block(const plan::PassRun& run);

}  // namespace halfstep::report

#pragma once
// `explain` of a config: every op of the training step with its dtypes, the reason for them, the
// casts, and hints.

#include "report/json.h"
#include "report/precision_block.h"

namespace halfstep::report {

struct Hint {
  std::string code;  ///< "W203"
  std::string where;
  std::string message;
};

struct Explanation {
  std::string policy;  ///< or "rewrite to bfloat16"
  std::string device;
  std::vector<OpRow> rows;
  train::RewriteSummary rewrite;
  std::int64_t casts = 0;
  double cast_bytes = 0;        ///< read and written by casts in a step
  double half_flops_share = 0;  ///< of products and convolutions
  double half_bytes_share = 0;  ///< of all outputs
  std::vector<Hint> hints;
};

Explanation explain(train::Session& session);

Json to_json(const Explanation& explanation);
std::string to_table(const Explanation& explanation);
/// Graphviz: one box per op, coloured by dtype.
std::string to_dot(const Explanation& explanation);

/// Ops whose dtypes differ between two policies.
Json diff_json(const Explanation& a,
               const Explanation& b,
               const std::string& name_a,
               const std::string& name_b);
std::string diff_table(const Explanation& a,
                       const Explanation& b,
                       const std::string& name_a,
                       const std::string& name_b);

}  // namespace halfstep::report

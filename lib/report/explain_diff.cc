#include "report/explain_report.h"

namespace halfstep::report {

void ExplainedDifference::fields(Fields& f) {
  f("name", name, "node of the step graph");
  f("type", type, "op");
  f("compute_dtype", compute_dtype, "on each side");
  f("out_dtype", out_dtype, "on each side");
  f("kernel", kernel, "on each side");
  f("reason", reason, "on each side");
}

void ExplainDiff::fields(Fields& f) {
  describe_kind(f, k_kind);
  f("policies", policies, "names of the two sides");
  f("ops", ops, {.doc = "whose dtypes differ", .each = "one op"});
}

ExplainDiff explain_diff(const Explanation& a,
                         const Explanation& b,
                         const std::string& name_a,
                         const std::string& name_b) {
  ExplainDiff diff{{name_a, name_b}, {}};
  for (const ExplainedOp& right : b.ops) {
    const ExplainedOp* left = a.find(right.info.name);
    if (right.cast || left == nullptr) continue;
    const OpInfo& x = left->info;
    const OpInfo& y = right.info;
    if (x.compute_dtype == y.compute_dtype && x.out_dtype == y.out_dtype) continue;
    diff.ops.push_back({y.name,
                        y.type,
                        {x.compute_dtype, y.compute_dtype},
                        {x.out_dtype, y.out_dtype},
                        {x.kernel, y.kernel},
                        {x.reason, y.reason}});
  }
  return diff;
}

}  // namespace halfstep::report

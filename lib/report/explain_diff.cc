#include "report/explain_diff.h"

namespace halfstep::report {

Json diff_json(const Explanation& a,
               const Explanation& b,
               const std::string& name_a,
               const std::string& name_b) {
  Json ops = Json::array();
  for (const ExplainedOp& right : b.ops) {
    const ExplainedOp* left = a.find(right.row.name);
    if (right.cast || left == nullptr) continue;
    const OpRow& x = left->row;
    const OpRow& y = right.row;
    if (x.compute_dtype == y.compute_dtype && x.out_dtype == y.out_dtype) continue;
    ops.push_back({{"name", utf8(y.name)},
                   {"type", y.type},
                   {"compute_dtype", {x.compute_dtype, y.compute_dtype}},
                   {"out_dtype", {x.out_dtype, y.out_dtype}},
                   {"kernel", {x.kernel, y.kernel}},
                   {"reason", {utf8(x.reason), utf8(y.reason)}}});
  }
  return {{"schema_version", 1},
          {"kind", "explain_diff"},
          {"policies", {name_a, name_b}},
          {"ops", std::move(ops)}};
}

}  // namespace halfstep::report
